"""Overlap: runs that the clock began are skipped, or wait, while an earlier one of their timeline is under way."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline import Timeline, after, daily, task
from timeline.features.recurring import hooks as recurring_hooks
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.leave import leave
from timeline.operations.move import move
from timeline.shortcuts import explain, redrive
from timeline.testing import only_timelines

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
FIRST, SECOND, THIRD = "2026-03-02", "2026-03-03", "2026-03-04"


def settlement(overlap):
    class Settlement(Timeline):
        name = "settlement"
        starts_on = daily("02:00", zone="UTC", overlap=overlap)

        @task(after())
        def settle(self):
            return self.run.key

        @task(after())
        def count(self):
            return self.run.key

        @task(after(hours=3))
        def look(self):
            return None

        @task(after(hours=4), aside=True)
        def late(self):
            return None

    return Settlement


@pytest.fixture
def _queue(db):
    with only_timelines(settlement("queue")):
        yield


def days_pass(days, run_at):
    """The slots of some days come; the first of them is under way."""
    ahead = NextBeginnings()
    for day in range(days):
        recur(ahead, now=START + day * DAY, using="default")
    for name in ("settle", "count"):
        run_at(of(FIRST, name), START + DAY)


def of(day, name="settle"):
    return ScheduledTask.objects.get(run__key__startswith=day, task_key=f"settlement.{name}")


def latest(day, name="settle"):
    return ScheduledTask.objects.filter(run__key__startswith=day, task_key=f"settlement.{name}").latest("revision")


def told(day, name="settle"):
    known = of(day, name)
    return known.state, known.reason_code


@pytest.mark.usefixtures("_queue")
class TestQueue:
    def test_rests_until_the_earlier_run_has_ended(self, run_at):
        days_pass(2, run_at)
        run_at(of(SECOND), START + DAY + 17 * HOUR)
        assert told(SECOND) == ("retryable", "waiting")
        assert of(SECOND).failures == 0

        run_at(of(FIRST, "look"), START + DAY + 17.5 * HOUR)

        assert told(SECOND) == ("available", "event")
        run_at(of(SECOND), START + DAY + 17.5 * HOUR)
        assert told(SECOND) == ("completed", "done")

    def test_says_which_run_it_waits_for(self, run_at):
        days_pass(2, run_at)
        run_at(of(SECOND), START + DAY + 17 * HOUR)

        assert "waits for the run 2026-03-02T02:00Z of this timeline to end" in str(explain(of(SECOND)))

    def test_lets_all_that_begins_a_run_wait(self, run_at):
        days_pass(2, run_at)

        run_at(of(SECOND), START + DAY + 17 * HOUR)
        run_at(of(SECOND, "count"), START + DAY + 17 * HOUR)

        assert told(SECOND, "count") == ("retryable", "waiting")

    def test_wakes_the_first_in_line_alone(self, run_at):
        days_pass(3, run_at)
        run_at(of(SECOND), START + 2 * DAY + 17 * HOUR)
        run_at(of(THIRD), START + 2 * DAY + 17 * HOUR)

        run_at(of(FIRST, "look"), START + 2 * DAY + 17.5 * HOUR)

        assert (told(SECOND)[0], told(THIRD)[0]) == ("available", "retryable")

    def test_is_waked_by_whatever_ends_the_earlier_run(self, run_at):
        days_pass(2, run_at)
        run_at(of(SECOND), START + DAY + 17 * HOUR)

        at = START + DAY + 17.5 * HOUR
        leave(
            timeline="settlement",
            entity=None,
            key="2026-03-02T02:00Z",
            reason="by hand",
            actor="",
            now=at,
            using="default",
        )

        assert told(SECOND) == ("available", "event")

    def test_is_waked_where_the_rest_of_the_earlier_run_is_cancelled(self, run_at):
        days_pass(2, run_at)
        run_at(of(SECOND), START + DAY + 17 * HOUR)

        reason = Reason.operator("not today")
        cancel(task_ids=[of(FIRST, "look").pk], reason=reason, now=START + DAY + 17.5 * HOUR, using="default")

        assert told(SECOND) == ("available", "event")

    def test_does_not_rest_where_the_earlier_run_ended_as_it_went_to_rest(self, run_at, monkeypatch):
        days_pass(2, run_at)
        asked = recurring_hooks.overlapping

        def then_the_run_ends(attempts, **given):
            found = asked(attempts, **given)
            run_at(of(FIRST, "look"), START + DAY + 17 * HOUR)
            return found

        monkeypatch.setattr(recurring_hooks, "overlapping", then_the_run_ends)
        run_at(of(SECOND), START + DAY + 17 * HOUR)
        monkeypatch.undo()

        assert of(SECOND).scheduled_at == START + DAY + 17 * HOUR

    def test_looks_again_after_an_hour_and_rests_again(self, run_at):
        days_pass(2, run_at)
        run_at(of(SECOND), START + DAY + 17 * HOUR)

        run_at(of(SECOND), START + DAY + 19 * HOUR)

        assert told(SECOND) == ("retryable", "waiting")
        assert TimelineRun.objects.get(key__startswith=SECOND).is_cleared is False

    def test_lets_an_alarm_come_in_its_time(self, run_at):
        days_pass(2, run_at)
        run_at(of(SECOND), START + DAY + 17 * HOUR)

        run_at(of(SECOND, "late"), START + DAY + 21 * HOUR)

        assert told(SECOND, "late") == ("completed", "done")
        assert not TimelineRun.objects.get(key__startswith=SECOND).is_cleared


class TestSkip:
    @pytest.fixture(autouse=True)
    def _skip(self, db):
        with only_timelines(settlement("skip")):
            yield

    def test_skips_the_second_task_too_while_the_first_has_not_been_asked(self, run_at, monkeypatch):
        """Two workers have begun both at the same time: neither must take the other for one that was let pass."""
        days_pass(2, run_at)
        asked = recurring_hooks.overlapping

        def then_the_other_looks(attempts, **given):
            monkeypatch.undo()
            run_at(of(SECOND, "count"), START + DAY + 17 * HOUR)
            return asked(attempts, **given)

        monkeypatch.setattr(recurring_hooks, "overlapping", then_the_other_looks)
        run_at(of(SECOND), START + DAY + 17 * HOUR)

        assert told(SECOND, "count") == ("cancelled", "overlap")
        assert told(SECOND) == ("cancelled", "overlap")

    def test_asks_nothing_once_a_run_was_let_pass(self, run_at):
        recur(NextBeginnings(), now=START, using="default")
        run_at(of(FIRST), START + DAY)
        assert TimelineRun.objects.get(key__startswith=FIRST).is_cleared

        with CaptureQueriesContext(connection) as caught:
            run_at(of(FIRST, "count"), START + DAY)

        assert not [query for query in caught if "earlier" in query["sql"]]

    def test_runs_what_somebody_redrives_of_a_skipped_run_once_nothing_is_in_its_way(self, run_at):
        days_pass(2, run_at)
        at = START + DAY + 17 * HOUR
        run_at(of(SECOND), at)
        for state, how_late in (("cancelled", 0), ("completed", 2)):
            if how_late:
                run_at(of(FIRST, "look"), at + HOUR)
            [again] = redrive(latest(SECOND), reason="do it")
            run_at(again, at + how_late * HOUR)
            assert latest(SECOND).state == state

    def test_skips_the_other_first_tasks_all_the_same(self, run_at):
        days_pass(2, run_at)
        at = START + DAY + 17 * HOUR
        run_at(of(SECOND), at)
        run_at(of(FIRST, "look"), at)

        run_at(of(SECOND, "count"), at)

        assert told(SECOND, "count") == ("cancelled", "overlap")


@pytest.mark.usefixtures("_queue")
class TestAnEarlierRun:
    def test_that_is_due_is_in_the_way_though_no_poll_has_made_it_available(self, run_at):
        ahead = NextBeginnings()
        recur(ahead, now=START, using="default")
        recur(ahead, now=START + DAY, using="default")
        assert told(FIRST)[0] == "scheduled"

        run_at(of(SECOND), START + DAY + 17 * HOUR)

        assert told(SECOND) == ("retryable", "waiting")

    def test_that_was_moved_when_it_was_due_is_in_nobodys_way(self, run_at):
        ahead = NextBeginnings()
        recur(ahead, now=START, using="default")
        recur(ahead, now=START + DAY, using="default")
        ScheduledTask.objects.filter(run__key__startswith=FIRST).update(state="available")
        due = ScheduledTask.objects.filter(run__key__startswith=FIRST)
        reason = Reason.operator("when there is time")
        moved = [row.pk for row in due]
        move(task_ids=moved, at=START + 30 * DAY, reason=reason, now=START + DAY, using="default")

        run_at(of(SECOND), START + DAY + 17 * HOUR)

        assert told(SECOND) == ("completed", "done")
