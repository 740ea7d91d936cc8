"""The next run of a clock is there at once when somebody ends the one ahead, or has it run early."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline import Timeline, after, daily, monthly, task
from timeline.features.maintenance.prune import prune
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.entities import NO_ENTITY
from timeline.operations.cancel import cancel, cancel_all
from timeline.operations.leave import leave
from timeline.operations.move import move, run_now
from timeline.testing import autostart, only_timelines

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
WHY = Reason.operator("a bank holiday")


class Invoices(Timeline):
    starts_on = monthly(1, "02:00", zone="UTC")

    @task(after())
    def write(self): ...

    @task(after(hours=3))
    def look(self): ...


class Nightly(Timeline):
    starts_on = daily("02:00", zone="UTC", once_per="day", overlap="queue")

    @task(after())
    def sweep(self): ...


@pytest.fixture(autouse=True)
def ahead(db):
    """What a process remembers that has polled."""
    with only_timelines(Invoices, Nightly):
        known = NextBeginnings()
        recur(known, now=START, using="default")
        yield known


def slots(timeline="invoices"):
    """Its runs, and whether each is open."""
    runs = TimelineRun.objects.filter(timeline=timeline).order_by("key")
    return [(run.key[:10], run.is_open) for run in runs]


def ids(key="invoices.write"):
    return list(ScheduledTask.objects.open().filter(task_key=key).order_by("scheduled_at").values_list("pk", flat=True))


def act(verb, task_ids, now=START, **given):
    return verb(task_ids=task_ids, reason=WHY, now=now, using="default", **given)


class TestMakeNext:
    def test_after_a_cancel_of_all_that_a_run_has(self):
        act(cancel, [*ids(), *ids("invoices.look")])

        assert slots() == [("2026-04-01", False), ("2026-05-01", True)]
        assert ScheduledTask.objects.open().filter(run__key="2026-05-01T02:00Z").count() == 2

    def test_after_a_cancel_of_its_first_task(self):
        act(cancel, ids())

        assert slots() == [("2026-04-01", True), ("2026-05-01", True)]

    def test_after_each_of_several_cancels(self):
        for _time in range(3):
            act(cancel, [*ids(), *ids("invoices.look")])

        assert [key for key, is_open in slots() if is_open] == ["2026-07-01"]

    def test_after_run_now(self):
        act(run_now, ids()[:1])

        assert slots() == [("2026-04-01", True), ("2026-05-01", True)]

    def test_after_a_move_to_before_its_slot(self):
        act(move, ids()[:1], at=START + HOUR)

        assert slots() == [("2026-04-01", True), ("2026-05-01", True)]

    def test_not_after_a_move_to_later(self):
        act(move, ids()[:1], at=START + 60 * DAY)

        assert slots() == [("2026-04-01", True)]

    def test_after_a_run_was_left(self):
        leave(
            timeline="invoices", entity=None, key="2026-04-01T02:00Z", reason="no", actor="", now=START, using="default"
        )

        assert slots() == [("2026-04-01", False), ("2026-05-01", True)]

    def test_after_all_of_the_system_was_cancelled(self):
        cancel_all(ref=NO_ENTITY, reason=WHY, now=START, using="default")

        assert slots() == [("2026-04-01", False), ("2026-05-01", True)]
        assert slots("nightly") == [("2026-03-02", False), ("2026-03-03", True)]

    def test_once_a_period_where_a_run_has_that(self):
        act(run_now, ids("nightly.sweep"))

        assert slots("nightly") == [("2026-03-02", True), ("2026-03-03", True)]

    def test_not_of_a_run_whose_slot_has_passed(self):
        act(cancel, [*ids(), *ids("invoices.look")], now=START + 40 * DAY)

        assert slots() == [("2026-04-01", False)]

    def test_not_where_starts_are_off(self):
        with autostart(False):
            act(cancel, [*ids(), *ids("invoices.look")])

        assert slots() == [("2026-04-01", False)]

    def test_of_what_no_clock_starts_asks_nothing(self, make_task):
        rows = [make_task(), make_task()]
        with CaptureQueriesContext(connection) as one:
            act(cancel, [rows[0].pk])
        with only_timelines(), CaptureQueriesContext(connection) as other:
            act(cancel, [rows[1].pk])

        assert len(one) == len(other)


class TestPolls:
    """What was made at once stays as it is, whoever polls and whenever."""

    @pytest.mark.parametrize("fresh", [True, False])
    def test_make_one_run_for_each_slot(self, ahead, fresh):
        act(run_now, ids()[:1])
        for day in range(0, 70, 5):
            recur(NextBeginnings() if fresh else ahead, now=START + day * DAY, using="default")

        assert [key for key, _is_open in slots()] == ["2026-04-01", "2026-05-01", "2026-06-01"]

    @pytest.mark.parametrize("fresh", [True, False])
    def test_leave_out_what_was_cancelled(self, ahead, fresh):
        for _time in range(2):
            act(cancel, [*ids(), *ids("invoices.look")])
        for day in range(0, 100, 5):
            recur(NextBeginnings() if fresh else ahead, now=START + day * DAY, using="default")

        assert [key for key, _is_open in slots()] == ["2026-04-01", "2026-05-01", "2026-06-01", "2026-07-01"]

    def test_move_nothing_to_a_slot_whose_cancelled_run_was_pruned(self):
        for _time in range(3):
            act(cancel, [*ids(), *ids("invoices.look")])
        prune(ended_before=START + DAY, using="default")
        assert [key for key, _is_open in slots()] == ["2026-06-01", "2026-07-01"]

        recur(NextBeginnings(), now=START + 2 * DAY, using="default")

        assert [key for key, _is_open in slots()] == ["2026-06-01", "2026-07-01"]

    def test_make_it_where_the_verb_could_not(self):
        """The lock was somebody else's; the process starts anew."""
        with autostart(False):
            act(cancel, [*ids(), *ids("invoices.look")])

        recur(NextBeginnings(), now=START + HOUR, using="default")

        assert slots() == [("2026-04-01", False), ("2026-05-01", True)]

    def test_begin_nothing_behind_a_run_that_a_clock_ahead_has_made(self, ahead):
        later = START + 365 * DAY
        recur(NextBeginnings(), now=later, using="default")
        before = slots()
        act(cancel, [*ids()[-1:], *ids("invoices.look")[-1:]])

        recur(NextBeginnings(), now=START + HOUR, using="default")

        assert [key for key, _is_open in slots()] == [key for key, _is_open in before]

    def test_run_it_beside_the_early_one_as_it_says(self, run_at):
        act(run_now, ids("nightly.sweep"))
        [first, second] = ids("nightly.sweep")

        run_at(ScheduledTask.objects.get(pk=first), START)

        states = [row.state for row in ScheduledTask.objects.filter(pk__in=[first, second]).order_by("scheduled_at")]
        assert states == [State.COMPLETED, State.SCHEDULED]
