"""A nudge every week, until somebody replies: what docs/how-to/repeating.md says of tasks that are repeated."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from timeline import Discard, Retry, Timeline, after, every, task
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import cancel, cancel_all, emit, explain, foreseen, move, preview, redrive, run_now
from timeline.testing import expect, only_timelines

WEEK = timedelta(days=7)


def has_replied(order):
    return order.note == "replied"


class Lead(Timeline):
    entity = "testapp.Order"
    starts_on = "lead.found"
    exits = {"lead.lost": "lost"}

    @task(every(days=7, until=has_replied, most=4), atomic=False, retry=Retry(max_attempts=1))
    def nudge(self, order):
        if order.note == "mail is down":
            raise Discard("no such address")

    @task(after(nudge, days=1))
    def hand_over(self, order): ...


class ByCondition(Timeline):
    entity = "testapp.Order"
    starts_on = "lead.met"

    @task(every(days=7, until=Q(note="replied"), most=4), unless=Q(paid=True))
    def call(self, order): ...


class Heartbeat(Timeline):
    """Of the system."""

    starts_on = "site.opened"

    @task(every(hours=1, most=2, first=timedelta(0)))
    def beat(self): ...


class Many(Timeline):
    """Several in one call."""

    entity = "testapp.Order"
    starts_on = "campaign.begun"

    @task(every(days=7, until=has_replied, most=2), bulk=10)
    def write(self, orders): ...


@pytest.fixture
def lead(clock, order):
    with only_timelines(Lead, ByCondition, Heartbeat, Many):
        emit("lead.found", order)
        yield order


def note(order, said):
    type(order).objects.filter(pk=order.pk).update(note=said)


def nudges(order):
    """Number, state and reason of each, as they were made."""
    rows = ScheduledTask.objects.for_entity(order).filter(task_key="lead.nudge").order_by("created_at", "pk")
    return [(row.occurrence, row.state, row.reason_code) for row in rows]


def last(order):
    return ScheduledTask.objects.for_entity(order).filter(task_key="lead.nudge").latest("created_at", "pk")


DONE = ("completed", "done")


class TestEveryWeekUntilAReply:
    def test_nudges_once_a_week_and_one_row_at_a_time(self, lead, clock):
        start = clock.now

        for week in (1, 2):
            assert nudges(lead)[-1] == (str(week), "scheduled", "")
            assert (last(lead).nominal_at, last(lead).scheduled_at) == (start + week * WEEK,) * 2
            clock.advance(days=7)

        assert nudges(lead) == [("1", *DONE), ("2", *DONE), ("3", "scheduled", "")]

    def test_ends_with_the_reply_and_says_so(self, lead, clock):
        clock.advance(days=7)
        note(lead, "replied")

        clock.advance(days=7)

        assert nudges(lead) == [("1", *DONE), ("2", "cancelled", "until")]
        assert "its series has ended (until has replied)" in explain(last(lead))
        expect(lead).scheduled("hand_over")
        clock.advance(days=1)
        assert TimelineRun.objects.get().end_reason == "finished"

    def test_ends_after_the_last(self, lead, clock):
        clock.advance(days=28)

        assert nudges(lead) == [(number, *DONE) for number in "1234"]
        expect(lead).scheduled("hand_over")
        clock.advance(days=1)
        assert TimelineRun.objects.get().end_reason == "finished"

    def test_ends_with_its_run(self, lead, clock):
        clock.advance(days=7)

        emit("lead.lost", lead)
        clock.advance(days=60)

        assert nudges(lead) == [("1", *DONE), ("2", "cancelled", "exit")]
        expect(lead).never("hand_over")

    def test_is_seen_ahead(self, lead, clock):
        start, open_row = clock.now, last(lead)

        assert [(item.task_key, item.expected_at - start) for item in foreseen(lead)] == [
            ("lead.nudge", 2 * WEEK),
            ("lead.nudge", 3 * WEEK),
            ("lead.nudge", 4 * WEEK),
            ("lead.hand_over", 4 * WEEK + timedelta(days=1)),
        ]
        assert [item.task_key for item in preview("lead", lead)] == ["lead.nudge"] * 4 + ["lead.hand_over"]
        assert foreseen(lead)[0].why.endswith(": number 2")
        story = explain(open_row)
        assert "every 7 days, 4 times at most, until has_replied" in story
        assert "It is number 1 of its series. The next are foreseen on" in story
        assert "When the last nudge has completed, lead.hand_over follows." in story
        clock.advance(days=28)
        assert "Number 2 of its series followed" in explain(ScheduledTask.objects.get(pk=open_row.pk))

    def test_that_is_the_last_says_so(self, lead, clock):
        clock.advance(days=21)

        assert "It is number 4 of its series, and the last." in explain(last(lead))


class TestWhatBecomesOfOne:
    def test_that_fails_does_not_end_the_series(self, lead, clock):
        note(lead, "mail is down")
        clock.advance(days=7)
        note(lead, "")

        clock.advance(days=7)

        assert nudges(lead)[:2] == [("1", "discarded", "handler"), ("2", *DONE)]

    def test_that_failed_is_redriven_beside_the_next(self, lead, clock):
        note(lead, "mail is down")
        clock.advance(days=7)
        failed = ScheduledTask.objects.get(occurrence="1")
        note(lead, "")

        redrive(failed, reason="the address was mended")
        clock.run_due()

        assert nudges(lead) == [("1", "discarded", "handler"), ("2", "scheduled", ""), ("1", *DONE)]

    def test_that_a_person_cancels_ends_the_series(self, lead, clock):
        clock.advance(days=7)
        cancel(last(lead), reason="she asked us to stop", actor="ada")

        clock.advance(days=60)

        assert nudges(lead) == [("1", *DONE), ("2", "cancelled", "operator")]
        expect(lead).never("hand_over")
        assert TimelineRun.objects.get().ended_at is not None

    def test_that_was_cancelled_goes_on_with_a_redrive(self, lead, clock):
        cancelled = last(lead)
        cancel(cancelled, reason="oops", actor="ada")
        redrive(cancelled, reason="it was not meant")
        clock.advance(days=7)

        assert nudges(lead) == [("1", "cancelled", "operator"), ("1", *DONE), ("2", "scheduled", "")]

    def test_cancel_all_leaves_nothing_that_comes_back(self, lead, clock):
        cancel_all(lead, reason="gone", actor="ada")

        clock.advance(days=60)

        assert nudges(lead) == [("1", "cancelled", "operator")]

    def test_that_is_moved_leaves_the_others_where_they_were(self, lead, clock):
        start = clock.now
        move(last(lead), at=start + timedelta(days=9), reason="holidays")

        clock.advance(days=9)

        assert nudges(lead) == [("1", *DONE), ("2", "scheduled", "")]
        assert last(lead).nominal_at == start + 2 * WEEK

    def test_that_is_moved_past_the_next_stands_for_that_too(self, lead, clock):
        """So one is left out: move it to the time of the next."""
        start = clock.now
        move(last(lead), at=start + 2 * WEEK, reason="holidays")

        clock.advance(days=14)

        assert last(lead).nominal_at == start + 3 * WEEK
        assert nudges(lead) == [("1", *DONE), ("2", "scheduled", "")]

    def test_that_is_run_now_does_not_bring_the_next_forward(self, lead, clock):
        start = clock.now
        run_now(last(lead), reason="she is on the phone")
        clock.run_due()

        assert last(lead).nominal_at == start + 2 * WEEK

    def test_that_ran_weeks_late_is_followed_by_no_burst(self, lead, clock):
        start = clock.now
        clock.set(start + 3 * WEEK + timedelta(hours=1))
        clock.run_due()

        assert nudges(lead) == [("1", *DONE), ("2", "scheduled", "")]
        assert last(lead).nominal_at == start + 4 * WEEK


class TestOtherWaysToDeclareIt:
    def test_until_a_condition_of_the_database(self, lead, clock):
        emit("lead.met", lead)
        type(lead).objects.filter(pk=lead.pk).update(paid=True)
        clock.advance(days=7)
        type(lead).objects.filter(pk=lead.pk).update(paid=True, note="replied")
        clock.advance(days=7)

        rows = ScheduledTask.objects.filter(task_key="by_condition.call").order_by("occurrence")
        assert [(row.occurrence, row.reason_code) for row in rows] == [("1", "guard"), ("2", "until")]

    def test_of_the_system(self, lead, clock):
        emit("site.opened")
        clock.advance(hours=3)

        assert ScheduledTask.objects.filter(task_key="heartbeat.beat", state="completed").count() == 2
        assert TimelineRun.objects.get(timeline="heartbeat").end_reason == "finished"

    def test_many_in_one_call(self, lead, clock):
        emit("campaign.begun", lead)
        clock.advance(days=7)
        note(lead, "replied")
        clock.advance(days=7)

        rows = ScheduledTask.objects.filter(task_key="many.write").order_by("occurrence")
        assert [(row.occurrence, row.reason_code) for row in rows] == [("1", "done"), ("2", "until")]


class Daily(Timeline):
    """The leads' timeline, once its code has changed."""

    name = "lead"
    entity = "testapp.Order"

    @task(every(days=1, until=has_replied, most=20), atomic=False)
    def nudge(self, order): ...


class TestAnIntervalThatIsChanged:
    def test_moves_the_one_that_waits_with_the_next_sweep(self, lead, clock):
        start = clock.now
        clock.advance(days=7)

        with only_timelines(Daily):
            begin_round(using="default")
            sweep(now=clock.now, using="default")

        assert nudges(lead) == [("1", *DONE), ("2", "scheduled", "moved")]
        assert last(lead).nominal_at == start + timedelta(days=8)


class TestCost:
    def test_is_the_same_for_each(self, lead, clock):
        """As many statements to go on to the third as to the second."""
        clock.run_due()  # What is looked at once an hour is looked at here.
        counts = []
        for _week in range(2):
            with CaptureQueriesContext(connection) as queries:
                clock.advance(days=7)
            counts.append(len(queries))

        assert counts[0] == counts[1]
