"""The story clock: moves story time, and runs what falls due on the way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import TestCase

from tests.testapp.models import Order
from timeline import Retry, Timeline, after, task
from timeline.clocks import story_now
from timeline.exceptions import NaiveDatetime, RetryAfter
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit, start
from timeline.testing import StoryClock, autostart, expect, only_timelines


class Steps(Timeline):
    """Two independent steps, one that follows, one that fails at first."""

    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=1))
    def first(self, order: Order) -> str:
        return self.now.isoformat()

    @task(after(days=3), retry=Retry(max_attempts=2))
    def second(self, order: Order) -> None:
        if self.task.attempt == 1:
            raise RetryAfter(timedelta(hours=1))

    @task(after(first, days=1))
    def third(self, order: Order) -> None: ...


@pytest.fixture
def placed(order, clock):
    """An order whose steps lie ahead."""
    with only_timelines(Steps):
        emit("order.placed", order)
        yield order


class TestStoryClock:
    def test_stands_still(self, clock):
        before = story_now("default")

        assert story_now("default") == before == clock.now

    def test_begins_where_it_is_told_and_lets_go_at_the_end(self, db):
        begin = datetime(2030, 1, 1, tzinfo=UTC)

        with StoryClock(begin):
            inside = story_now("default")

        assert inside == begin
        assert story_now("default") < begin

    def test_refuses_a_naive_start(self):
        with pytest.raises(NaiveDatetime):
            StoryClock(datetime(2030, 1, 1))  # noqa: DTZ001


class TestAdvance:
    def test_runs_what_falls_due_in_order_at_its_own_time(self, placed, clock):
        begin = clock.now

        ran = clock.advance(days=2)

        assert [(task.task_name, task.finished_at - begin) for task in ran] == [
            ("first", timedelta(days=1)),
            ("third", timedelta(days=2)),
        ]
        assert ran[0].result == (begin + timedelta(days=1)).isoformat()
        assert clock.now == begin + timedelta(days=2)

    def test_runs_nothing_before_its_time(self, placed, clock):
        assert clock.advance(hours=23, minutes=59) == []

    def test_shows_a_retried_task_each_time(self, placed, clock):
        ran = clock.advance(weeks=1)

        assert [task.task_name for task in ran] == ["first", "third", "second", "second"]
        assert ScheduledTask.objects.get(task_key="steps.second").state == "completed"

    @pytest.mark.parametrize("distance", [{"days": -1}, {"hours": -1}])
    def test_refuses_to_go_back(self, clock, distance):
        with pytest.raises(ValueError, match="negative"):
            clock.advance(**distance)


class TestRunUntil:
    def test_stops_as_soon_as_the_condition_holds(self, placed, clock):
        clock.run_until(lambda: ScheduledTask.objects.filter(task_key="steps.third").exists())

        expect(placed).completed("first").scheduled("third")

    def test_fails_when_the_condition_never_holds(self, placed, clock):
        with pytest.raises(AssertionError, match="Nothing is left to run"):
            clock.run_until(lambda: False)

    def test_takes_a_moment(self, placed, clock):
        end = clock.now + timedelta(days=1)

        ran = clock.run_until(end)

        assert [task.task_name for task in ran] == ["first"]
        assert clock.now == end


class TestRunNext:
    def test_moves_to_the_next_task_and_runs_it(self, placed, clock):
        begin = clock.now

        ran = clock.run_next()

        assert ran is not None
        assert (ran.task_name, clock.now - begin) == ("first", timedelta(days=1))

    def test_says_so_when_there_is_none(self, clock):
        assert clock.run_next() is None


class TestRunDue:
    def test_runs_what_is_due_and_does_not_move_time(self, order, clock):
        with only_timelines(Steps):
            start(Steps, order, started_at=clock.now - timedelta(days=1))
            before = clock.now

            ran = clock.run_due()

        assert [task.task_name for task in ran] == ["first"]
        assert clock.now == before


class TestAutostart:
    def test_off_records_the_event_and_starts_nothing(self, order, clock):
        with only_timelines(Steps), autostart(False):
            emission = emit("order.placed", order)

        assert emission.recorded
        assert not TimelineRun.objects.exists()

    def test_off_still_lets_runs_be_started_by_hand(self, order, clock):
        with only_timelines(Steps), autostart(False):
            start(Steps, order)

        assert TimelineRun.objects.count() == 1

    def test_is_on_again_within_a_story(self, order, settings, db):
        settings.TIMELINE = {"AUTOSTART": False}

        with only_timelines(Steps), StoryClock():
            emit("order.placed", order)

        assert TimelineRun.objects.count() == 1


class StoryInATestCase(TestCase):
    """The kit in Django's own test case."""

    def setUp(self) -> None:
        self.clock = self.enterContext(StoryClock())
        self.enterContext(only_timelines(Steps))

    def test_lives_through_it(self) -> None:
        order = Order.objects.create()
        emit("order.placed", order)

        self.clock.advance(days=2)

        expect(order).completed("steps.first").completed("steps.third").open("steps.second")


class TestKeywords:
    @pytest.mark.parametrize(("keyword", "remedy"), [("day", "Did you mean 'days'?"), ("fortnights", "It takes ")])
    def test_that_there_are_none_of_are_refused_with_those_that_are_meant(self, db, keyword, remedy):
        with StoryClock() as clock, pytest.raises(TypeError) as refused:
            clock.advance(**{keyword: 3})

        assert str(refused.value).startswith(f"advance() takes no {keyword}=. {remedy}")
