"""Again: what comes while a run is open begins one more when it has finished."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Timeline, after, created, daily, task
from timeline.exceptions import DefinitionError
from timeline.lifecycle import Reason
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.succession import succeed
from timeline.shortcuts import emit, leave, redrive, start
from timeline.testing import StoryClock, only_timelines

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
told = []


class Syncing(Timeline):
    entity = "testapp.Order"
    starts_on = ("order.updated", "order.imported")
    exits = {"order.closed": "closed"}
    again = True

    @task(after(minutes=1))
    def sync(self, order):
        told.append(self.event and self.event.payload.get("n"))


@pytest.fixture(autouse=True)
def clock(db):
    told.clear()
    with only_timelines(Syncing), StoryClock(NOW) as clock:
        yield clock


def runs():
    return TimelineRun.objects.order_by("recorded_at", "pk")


class TestAgain:
    @pytest.mark.parametrize("apart", [timedelta(0), timedelta(seconds=1)])
    def test_begins_one_more_for_the_last_of_many(self, clock, order, apart):
        for n in range(5):
            emit("order.updated", order, payload={"n": n})
            clock.advance(apart)
        assert runs().count() == 1

        clock.advance(hours=1)

        assert told == [0, 4]
        assert [run.end_code for run in runs()] == ["finished", "finished"]

    def test_begins_none_where_nothing_came(self, clock, order):
        emit("order.updated", order, payload={"n": 0})
        emit("order.seen", order)
        emit("order.updated", Order.objects.create(), payload={"n": 1})
        clock.advance(hours=1)

        assert told == [0, 1]

    def test_begins_one_more_for_each_run_in_which_something_came(self, clock, order):
        emit("order.updated", order, payload={"n": 0})
        emit("order.updated", order, payload={"n": 1})
        clock.advance(seconds=90)
        emit("order.imported", order, payload={"n": 2})
        clock.advance(hours=1)

        assert told == [0, 1, 2]
        assert runs().count() == 3

    def test_counts_what_came_since_a_run_was_begun_by_hand(self, clock, order):
        emit("order.updated", order, payload={"n": 0})
        clock.advance(hours=1)
        start("syncing", order)
        clock.advance(seconds=61)
        assert told == [0, None]

        start("syncing", order)
        emit("order.updated", order, payload={"n": 1})
        clock.advance(hours=1)

        assert told == [0, None, None, 1]

    def test_begins_none_after_an_exit_or_by_hand(self, clock, order):
        for end in (lambda: emit("order.closed", order), lambda: leave("syncing", order, reason="enough")):
            emit("order.updated", order, payload={"n": 0})
            emit("order.updated", order, payload={"n": 1})
            end()
            clock.advance(hours=1)

        assert told == []

    def test_begins_one_more_where_all_of_it_was_cancelled(self, clock, order):
        emit("order.updated", order, payload={"n": 0})
        emit("order.updated", order, payload={"n": 1})
        row = ScheduledTask.objects.get()
        cancel(task_ids=[row.pk], reason=Reason.operator("not this one"), now=clock.now, using="default")
        clock.advance(hours=1)

        assert told == [1]

    def test_begins_none_for_what_has_begun_one_already(self, clock, order):
        """A run that is redriven ends once more; what came while it was open the first time has been seen to."""
        emit("order.updated", order, payload={"n": 0})
        emit("order.updated", order, payload={"n": 1})
        clock.advance(hours=1)
        redrive(ScheduledTask.objects.earliest("created_at", "pk"), reason="once more")
        clock.advance(hours=1)

        assert told == [0, 1, 0]

    def test_begins_one_more_for_what_comes_while_it_is_redriven(self, clock, order):
        emit("order.updated", order, payload={"n": 0})
        emit("order.updated", order, payload={"n": 1})
        clock.advance(hours=1)
        redrive(ScheduledTask.objects.earliest("created_at", "pk"), reason="once more")
        emit("order.updated", order, payload={"n": 2})
        clock.advance(hours=1)

        assert told == [0, 1, 0, 2]

    def test_leaves_runs_with_a_key_alone(self, clock, order):
        start("syncing", order, key="by hand")
        emit("order.updated", order, payload={"n": 0})
        clock.advance(hours=1)

        assert sorted(told, key=str) == [0, None]

    def test_takes_the_same_number_of_statements_for_many(self, clock):
        counts = []
        for count in (2, 20):
            orders = [Order.objects.create() for _ in range(count)]
            for n in range(2):
                for each in orders:
                    emit("order.updated", each, payload={"n": n})
            ids = [str(each.pk) for each in orders]
            some = list(TimelineRun.objects.filter(entity_id__in=ids))
            TimelineRun.objects.filter(entity_id__in=ids).update(
                ended_at=clock.now, end_code="finished", end_reason="finished"
            )
            for run in some:
                run.refresh_from_db()
            with transaction.atomic(), CaptureQueriesContext(connection) as asked:
                assert len(succeed(some, now=clock.now, using="default")) == count
            counts.append(len(asked))

        assert counts[0] == counts[1]

    def test_names_the_event_that_began_it(self, clock, order):
        emit("order.updated", order, payload={"n": 0})
        emit("order.updated", order, payload={"n": 1})
        clock.advance(seconds=61)

        assert runs().last().started_by == Event.objects.get(payload={"n": 1})


class TestDeclaring:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"again": 1, "starts_on": "x"}, "has again = 1"),
            ({"again": True, "starts_on": "x", "once": True}, "has again, and once"),
            ({"again": True, "starts_on": "x", "key": "n"}, "has again, and a key"),
            ({"again": True, "starts_on": created(), "entity": "testapp.Order"}, "no event starts it"),
            ({"again": True, "starts_on": daily("02:00")}, "no event starts it"),
        ],
    )
    def test_refuses_what_goes_not_together(self, options, said):
        def go(self): ...

        with pytest.raises(DefinitionError, match=said):
            type("Bad", (Timeline,), {"go": task(after())(go), **options})

    def test_leaves_a_task_of_that_name_its_key(self):
        class Old(Timeline):
            starts_on = "x"

            @task(after())
            def again(self): ...

        assert Old.definition.again is False
