"""What has no row yet: follow-ups of open tasks, and a preview of a run before it starts."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.testapp.models import Order, Parcel
from timeline import Timeline, after, at, before, task
from timeline.exceptions import DateOutOfRange, NaiveDatetime, UnknownTimeline, WrongEntity
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.reading.outlook import foreseen, foreseen_of, preview
from timeline.shortcuts import start
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order):
        return None

    @task(after(ship, days=2))
    def ask(self, order):
        return None

    @task(after(ask, hours=1))
    def thank(self, order):
        return None

    @task(before("due_on", days=1))
    def bill(self, order):
        return None

    @task()
    def call(self, order):
        return None


class Sweep(Timeline):
    @task(after(hours=1))
    def sweep(self):
        return None

    @task(after(sweep, hours=1))
    def report(self):
        return None


@pytest.fixture(autouse=True)
def _story(clock, now):
    clock.set(now)
    with only_timelines(Delivery, Sweep):
        yield


@pytest.fixture
def order(now):
    return Order.objects.create(ships_at=now + timedelta(days=5))


def keys(entity, now):
    return [item.task_key for item in foreseen(entity=entity, now=now, using="default")]


class TestForeseen:
    def test_tells_what_follows_when_and_why(self, order, now):
        start(Delivery, order)

        assert foreseen(entity=order, now=now, using="default") == [
            ("delivery.ask", now + timedelta(days=7), "2 days after ship completes"),
            ("delivery.thank", now + timedelta(days=7, hours=1), "1 hour after ask completes"),
        ]

    def test_counts_from_now_what_is_overdue(self, order, now):
        start(Delivery, order)
        late = now + timedelta(days=30)

        assert foreseen(entity=order, now=late, using="default")[0].expected_at == late + timedelta(days=2)

    def test_drops_what_has_its_row(self, order, now, clock):
        start(Delivery, order)

        clock.run_next()

        assert keys(order, clock.now) == ["delivery.thank"]

    def test_drops_what_can_never_come(self, order, now):
        start(Delivery, order)
        row = ScheduledTask.objects.get()
        cancel(task_ids=[row.pk], reason=Reason.operator("no"), now=now, using="default")

        assert keys(order, now) == []

    def test_is_silent_of_a_run_that_has_ended(self, order, now):
        start(Delivery, order)
        TimelineRun.objects.update(ended_at=now, end_reason="closed")

        assert keys(order, now) == []

    def test_is_silent_of_other_entities(self, order, now):
        start(Delivery, order)

        assert keys(Order.objects.create(), now) == []
        assert keys(None, now) == []

    def test_tells_of_the_systems_own(self, now):
        start(Sweep)

        assert keys(None, now) == ["sweep.report"]

    def test_is_silent_of_an_unknown_timeline(self, order, now):
        start(Delivery, order)

        with only_timelines(Sweep):
            assert keys(order, now) == []

    def test_is_silent_where_a_field_gives_no_proper_time(self, order, now):
        start(Delivery, order)
        Order.objects.update(ships_at=datetime(9001, 1, 1, tzinfo=UTC))

        assert keys(Order.objects.get(), now) == []


class TestForeseenOf:
    def test_tells_whose_each_is_and_takes_as_many_queries_for_many_runs(self, now, django_assert_num_queries):
        orders = [Order.objects.create(ships_at=now + timedelta(days=days)) for days in (3, 2, 1)]
        runs = [start(Delivery, order).run for order in orders]

        for some in (runs[:1], runs):
            with django_assert_num_queries(2):
                found = foreseen_of(some, now=now, using="default")
            assert len(found) == 2 * len(some)

        assert [run.pk for run, outlook in found if outlook.task_key == "delivery.ask"] == [
            run.pk for run in reversed(runs)
        ]

    def test_passes_over_runs_of_timelines_that_are_not_known_any_more(self, order, now):
        run = start(Delivery, order).run

        with only_timelines(Sweep):
            assert foreseen_of([run], now=now, using="default") == []


class TestPreview:
    def test_tells_all_of_a_run_those_without_a_time_last(self, order, now):
        assert preview(timeline="delivery", entity=order, started_at=None, now=now) == [
            ("delivery.ship", now + timedelta(days=5), "at ships_at"),
            ("delivery.ask", now + timedelta(days=7), "2 days after ship completes"),
            ("delivery.thank", now + timedelta(days=7, hours=1), "1 hour after ask completes"),
            ("delivery.bill", None, "1 day before due_on"),
        ]

    def test_is_what_a_run_then_has(self, order, now, clock):
        told = {
            item.task_key: item.expected_at
            for item in preview(timeline="delivery", entity=order, started_at=None, now=now)
        }

        start(Delivery, order)
        clock.advance(days=30)

        came = {row.task_key: row.scheduled_at for row in ScheduledTask.objects.all()}
        assert {key: at for key, at in told.items() if at is not None} == came

    def test_counts_from_the_start_given(self, now):
        outlooks = preview(timeline="sweep", entity=None, started_at=now + timedelta(days=1), now=now)

        assert outlooks[0].expected_at == now + timedelta(days=1, hours=1)

    def test_writes_and_reads_nothing(self, order, now, django_assert_num_queries):
        with django_assert_num_queries(0):
            preview(timeline="delivery", entity=order, started_at=None, now=now)

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ({"timeline": "nothing"}, UnknownTimeline),
            ({"entity": Parcel(pk=UUID(int=7))}, WrongEntity),
            ({"timeline": "sweep"}, WrongEntity),
            ({"started_at": datetime(2026, 1, 1)}, NaiveDatetime),  # noqa: DTZ001 (that is the case)
            ({"started_at": datetime(9000, 1, 1, tzinfo=UTC)}, DateOutOfRange),
        ],
        ids=str,
    )
    def test_refuses_what_a_start_would_refuse(self, order, now, given, error):
        given = {"timeline": "delivery", "entity": order, "started_at": None} | given

        with pytest.raises(error):
            preview(now=now, **given)
