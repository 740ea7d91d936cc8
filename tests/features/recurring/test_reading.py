"""When a timeline starts by the clock, in plain words."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, at, daily, hourly, task
from timeline.features.recurring.reading import Next, next_runs, next_slot, schedule_in_words, schedule_of
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.models import ScheduledTask
from timeline.reading.explanation import explain
from timeline.reading.inventory import inventory
from timeline.registry import registry
from timeline.shortcuts import cancel, move, schedule
from timeline.testing import StoryClock, only_timelines

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
SAID = "every day at 02:00 in Europe/Berlin, next 25 November 2026 02:00"


class Settlement(Timeline):
    starts_on = daily("02:00", zone="Europe/Berlin")

    @task(after())
    def settle(self): ...


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order): ...

    @task()
    def call(self, order): ...


@pytest.fixture(autouse=True)
def _only_these():
    with only_timelines(Settlement, Delivery):
        yield


class TestScheduleInWords:
    def test_says_when_it_comes_and_when_it_comes_next(self):
        assert schedule_in_words(Settlement.definition.recurring, now=NOW) == SAID

    def test_says_when_it_comes_alone(self):
        assert Settlement.definition.recurring.describe() == "every day at 02:00 in Europe/Berlin"

    def test_names_the_zone_of_the_site_where_none_is_declared(self, settings):
        settings.TIME_ZONE = "Asia/Tokyo"

        said = schedule_in_words(hourly(5), now=NOW)

        assert said == "every hour at minute 5 in Asia/Tokyo, next 24 November 2026 21:05"


class TestNextSlot:
    def test_is_after_now(self):
        at = datetime(2026, 11, 25, 1, 0, tzinfo=UTC)

        assert next_slot(Settlement.definition.recurring, now=NOW) == at
        assert next_slot(Settlement.definition.recurring, now=at) == datetime(2026, 11, 26, 1, 0, tzinfo=UTC)

    def test_is_none_where_no_date_can_hold_it(self):
        assert next_slot(Settlement.definition.recurring, now=datetime.max.replace(tzinfo=UTC)) is None


class TestScheduleOf:
    def test_is_empty_for_what_does_not_start_by_the_clock(self):
        assert [schedule_of(name, now=NOW) for name in ("settlement", "delivery", "gone")] == [SAID, "", ""]


@pytest.mark.django_db
class TestExplain:
    def test_tells_the_schedule_of_a_run_that_the_clock_began(self):
        recur(NextBeginnings(), now=NOW, using="default")
        told = explain(ScheduledTask.objects.get(), now=NOW, using="default")

        assert f"Its timeline starts by the clock: {SAID}." in told.splitlines()

    def test_tells_none_of_other_tasks(self):
        order = Order.objects.create()
        told = explain(schedule("delivery.call", order, at=NOW).task, now=NOW, using="default")

        assert "by the clock" not in told


class TestNextRuns:
    @pytest.fixture(autouse=True)
    def _ahead(self, db):
        with only_timelines(Settlement, Delivery), StoryClock(NOW):
            recur(NextBeginnings(), now=NOW, using="default")
            yield

    def shown(self):
        return next_runs(registry, using="default")

    def test_are_those_of_the_rows(self):
        [row] = ScheduledTask.objects.all()

        assert self.shown() == {"settlement": Next(row.scheduled_at, None)}
        assert row.scheduled_at == next_slot(Settlement.definition.recurring, now=NOW)

    def test_are_where_somebody_moved_them(self):
        move(ScheduledTask.objects.get(), at=NOW + timedelta(days=3), reason="later")

        assert self.shown()["settlement"].begins_at == NOW + timedelta(days=3)

    def test_are_behind_what_was_cancelled(self):
        [row] = ScheduledTask.objects.all()
        cancel(row, reason="a bank holiday")

        assert self.shown() == {"settlement": Next(row.scheduled_at + timedelta(days=1), row.scheduled_at)}
        [entry] = inventory([Settlement.definition], now=NOW, using="default")
        assert entry.starts[0].next_at == row.scheduled_at + timedelta(days=1)
        assert entry.starts[0].said.endswith("next 26 November 2026 02:00")

    def test_cost_nothing_where_no_clock_starts_them(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert next_runs([Delivery.definition], using="default") == {}

    def test_cost_two_statements_for_many(self, django_assert_num_queries):
        several = [type(f"Clock{n}", (Settlement,), {"name": f"clock_{n}"}) for n in range(12)]
        with only_timelines(*several):
            recur(NextBeginnings(), now=NOW, using="default")
            with django_assert_num_queries(2):
                assert len(self.shown()) == 12
