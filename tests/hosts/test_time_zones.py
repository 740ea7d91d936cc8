"""TIME_ZONE other than UTC: days are the site's days, rows and texts are in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection, connections
from django.utils import timezone

from tests.testapp.models import Order
from timeline import Timeline, after, at, before, task
from timeline.models import ScheduledTask
from timeline.reading.text_pictures import picture
from timeline.shortcuts import emit, explain, schedule
from timeline.testing import expect, only_timelines


class Season(Timeline):
    """Counts days and hours, from the start and from a date."""

    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=1))
    def next_day(self, order: Order) -> str:
        return str(timezone.get_current_timezone())

    @task(after(hours=24))
    def in_24_hours(self, order: Order) -> None: ...

    @task(at("due_on"))
    def on_the_day(self, order: Order) -> None: ...

    @task(before("due_on", days=1))
    def the_day_before(self, order: Order) -> None: ...


# Zone, a start on the day before its clocks change, the date of the change, and what is due when.
CHANGES = [
    pytest.param(
        "Europe/Berlin",
        datetime(2026, 3, 28, 9, tzinfo=UTC),
        date(2026, 3, 29),
        {
            "the_day_before": datetime(2026, 3, 27, 23, tzinfo=UTC),
            "on_the_day": datetime(2026, 3, 28, 23, tzinfo=UTC),
            "next_day": datetime(2026, 3, 29, 8, tzinfo=UTC),
            "in_24_hours": datetime(2026, 3, 29, 9, tzinfo=UTC),
        },
        id="Berlin in spring",
    ),
    pytest.param(
        "Europe/Berlin",
        datetime(2026, 10, 24, 9, tzinfo=UTC),
        date(2026, 10, 26),
        {
            "the_day_before": datetime(2026, 10, 24, 22, tzinfo=UTC),
            "on_the_day": datetime(2026, 10, 25, 23, tzinfo=UTC),
            "next_day": datetime(2026, 10, 25, 10, tzinfo=UTC),
            "in_24_hours": datetime(2026, 10, 25, 9, tzinfo=UTC),
        },
        id="Berlin in autumn",
    ),
    pytest.param(
        "America/New_York",
        datetime(2026, 10, 31, 12, tzinfo=UTC),
        date(2026, 11, 2),
        {
            "the_day_before": datetime(2026, 11, 1, 4, tzinfo=UTC),
            "on_the_day": datetime(2026, 11, 2, 5, tzinfo=UTC),
            "next_day": datetime(2026, 11, 1, 13, tzinfo=UTC),
            "in_24_hours": datetime(2026, 11, 1, 12, tzinfo=UTC),
        },
        id="New York in autumn",
    ),
]


def stored(row):
    """The due time as the column has it."""
    at_utc = " AT TIME ZONE 'UTC'" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        pk = row.pk.hex if connection.vendor == "sqlite" else row.pk
        cursor.execute(f"SELECT CAST(scheduled_at{at_utc} AS text) FROM timeline_scheduledtask WHERE id = %s", [pk])  # noqa: S608
        return cursor.fetchone()[0]


@pytest.mark.parametrize(("zone", "begin", "day", "due"), CHANGES)
class TestASiteOfAnotherZone:
    @pytest.fixture
    def order(self, settings, clock, zone, begin, day):
        settings.TIME_ZONE = zone
        clock.set(begin)
        with only_timelines(Season):
            order = Order.objects.create(due_on=day)
            emit("order.placed", order)
            yield order

    def test_counts_days_on_its_own_clock(self, order, due):
        rows = {row.task_name: row.scheduled_at for row in ScheduledTask.objects.all()}

        assert rows == due
        assert {at.utcoffset() for at in rows.values()} == {timedelta(0)}

    def test_stores_utc(self, order, due):
        row = ScheduledTask.objects.get(task_key="season.next_day")

        assert stored(row) == f"{due['next_day']:%Y-%m-%d %H:%M:%S}"

    def test_says_utc(self, order, due, clock):
        row = ScheduledTask.objects.get(task_key="season.next_day")

        assert f"It is due on {due['next_day']:%Y-%m-%d %H:%M} UTC" in explain(row)
        assert f"{due['next_day']:%Y-%m-%d %H:%M}  season.next_day" in picture(order, now=clock.now, using="default")

    def test_lets_handlers_read_its_own_clock(self, order, due, zone, clock):
        ran = {row.task_name: row for row in clock.run_until(due["in_24_hours"] + timedelta(hours=2))}

        assert (ran["next_day"].result, ran["next_day"].finished_at) == (zone, due["next_day"])

    def test_is_not_moved_by_the_zone_of_a_visitor(self, settings, order, due):
        with timezone.override("Asia/Tokyo"):
            order.save()

        expect(order).scheduled("next_day", at=due["next_day"]).open(*due)

    def test_takes_a_time_of_its_own_clock(self, order, due, clock):
        local = timezone.localtime(clock.now + timedelta(days=9))
        assert local.utcoffset()

        row = schedule("season.next_day", order, at=local).task

        assert f"It is due on {clock.now + timedelta(days=9):%Y-%m-%d %H:%M} UTC" in explain(row)


class TestAConnectionOfAnotherZone:
    """DATABASES["default"]["TIME_ZONE"]: what is read comes in that zone."""

    @pytest.fixture(autouse=True)
    def _zone(self, db, monkeypatch):
        def forget():
            for name in ("timezone", "timezone_name"):
                vars(connections["default"]).pop(name, None)
            connection.ensure_timezone()

        with monkeypatch.context() as patch:
            patch.setitem(connection.settings_dict, "TIME_ZONE", "Europe/Berlin")
            forget()
            yield
        forget()

    def test_has_texts_in_utc(self, clock, delivery, order):
        clock.set(datetime(2026, 6, 1, 9, tzinfo=UTC))
        emit("order.placed", order)

        row = ScheduledTask.objects.get()

        assert row.scheduled_at.utcoffset() == timedelta(hours=2)
        assert "It is due on 2026-06-02 09:00 UTC" in explain(row)
        assert "2026-06-02 09:00  delivery.pack" in picture(order, now=clock.now, using="default")
        assert [done.state for done in clock.advance(days=1)] == ["completed"]
