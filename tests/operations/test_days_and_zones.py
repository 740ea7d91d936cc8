"""A date is the same date in every time zone: what was done for it is done, what waits for it begins at the new midnight."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, at, before, task
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask
from timeline.operations.move import move, run_now
from timeline.operations.reconcile import reconcile
from timeline.testing import only_timelines

DUE_ON = date(2026, 6, 10)
BERLIN, NEW_YORK, TOKYO, AUCKLAND, HONOLULU = (
    "Europe/Berlin",
    "America/New_York",
    "Asia/Tokyo",
    "Pacific/Auckland",
    "Pacific/Honolulu",
)
MIDNIGHTS = {
    BERLIN: datetime(2026, 6, 9, 22, tzinfo=UTC),
    NEW_YORK: datetime(2026, 6, 10, 4, tzinfo=UTC),
    TOKYO: datetime(2026, 6, 9, 15, tzinfo=UTC),
    AUCKLAND: datetime(2026, 6, 9, 12, tzinfo=UTC),
    HONOLULU: datetime(2026, 6, 10, 10, tzinfo=UTC),
}
OPERATOR = Reason.operator("asked for", "ada")
MOVED = [(BERLIN, NEW_YORK), (BERLIN, TOKYO), (AUCKLAND, HONOLULU), (HONOLULU, AUCKLAND)]


class Deadline(Timeline):
    """About a date, on the clocks of whom it is about."""

    entity = "testapp.Order"
    time_zone = "zone"

    @task(before("due_on", days=3))
    def remind(self, order):
        return None

    @task(at("due_on"))
    def dun(self, order):
        return None


@pytest.fixture(autouse=True)
def _deadline():
    with only_timelines(Deadline):
        yield


@pytest.fixture
def due(now, start_at, order):
    """Tasks of an order in a zone: ``due(BERLIN)``, by name."""

    def make(zone):
        save(zone=zone, due_on=DUE_ON)
        start_at("deadline", order, now)
        return {row.task_name: row for row in ScheduledTask.objects.all()}

    return make


def save(**fields):
    order = Order.objects.get()
    for name, value in fields.items():
        setattr(order, name, value)
    order.save()


def reconcile_now(moment):
    reconcile(entity=Order.objects.get(), now=moment, using="default")


def done_ahead(row, run_at, now):
    """It is done long before its time: so no zone's midnight is past."""
    run_now(task_ids=[row.pk], reason=OPERATOR, now=now, using="default")
    return run_at(ScheduledTask.objects.get(pk=row.pk), now)


class TestAZoneThatChanges:
    @pytest.mark.parametrize(("zone", "another"), MOVED)
    def test_has_nothing_done_again(self, due, run_at, now, zone, another):
        done = done_ahead(due(zone)["remind"], run_at, now)

        Order.objects.update(zone=another)
        reconcile_now(now)

        assert done.state == State.COMPLETED
        assert ScheduledTask.objects.filter(task_key="deadline.remind").count() == 1

    def test_has_nothing_done_again_whose_time_comes_a_second_time(self, due, run_at):
        """Reminded at midnight in Berlin, the customer is in New York an hour later, where it is not midnight yet."""
        done = run_at(due(BERLIN)["dun"], MIDNIGHTS[BERLIN])

        Order.objects.update(zone=NEW_YORK)
        reconcile_now(MIDNIGHTS[BERLIN] + timedelta(hours=1))

        assert done.state == State.COMPLETED
        assert ScheduledTask.objects.filter(task_key="deadline.dun").count() == 1

    @pytest.mark.parametrize(("zone", "another"), MOVED)
    def test_moves_what_waits_to_the_new_midnight(self, due, zone, another):
        row = due(zone)["dun"]

        save(zone=another)

        assert row.scheduled_at == MIDNIGHTS[zone]
        row.refresh_from_db()
        assert (row.state, row.scheduled_at, row.revision) == (State.SCHEDULED, MIDNIGHTS[another], 1)

    def test_has_nothing_done_again_that_was_moved_before(self, due, run_at, now):
        """To another zone's midnight, and by hand."""
        row = due(BERLIN)["remind"]
        save(zone=TOKYO)
        [row] = move(task_ids=[row.pk], at=now, reason=OPERATOR, now=now, using="default")
        run_at(row, now)

        Order.objects.update(zone=NEW_YORK)
        reconcile_now(now)

        assert ScheduledTask.objects.filter(task_key="deadline.remind").count() == 1


class TestADateThatChanges:
    @pytest.mark.parametrize("by", [-1, 1])
    @pytest.mark.parametrize(("zone", "another"), [*MOVED, (BERLIN, BERLIN), (AUCKLAND, AUCKLAND)])
    def test_is_reminded_of_again(self, due, run_at, now, zone, another, by):
        """Also if the zone changes at the same time."""
        done = done_ahead(due(zone)["remind"], run_at, now)

        Order.objects.update(zone=another, due_on=DUE_ON + timedelta(days=by))
        reconcile_now(now)

        again = ScheduledTask.objects.get(task_key="deadline.remind", revision=2)
        assert (again.state, again.previous) == (State.SCHEDULED, done)
        assert again.anchor_date == DUE_ON + timedelta(days=by)

    def test_is_reminded_of_again_where_its_midnight_stays_where_it_was(self, due, run_at, now):
        """Across the date line."""
        done_ahead(due("Pacific/Tongatapu")["remind"], run_at, now)

        Order.objects.update(zone="Pacific/Pago_Pago", due_on=DUE_ON - timedelta(days=1))
        reconcile_now(now)

        assert ScheduledTask.objects.filter(task_key="deadline.remind").count() == 2


class TestARowOfAnEarlierVersion:
    """It knows the midnight, and not the day."""

    @pytest.mark.parametrize(("zone", "another"), [(BERLIN, NEW_YORK), (BERLIN, AUCKLAND), (NEW_YORK, HONOLULU)])
    def test_is_not_done_again_where_the_midnight_tells_the_day(self, due, run_at, now, zone, another):
        done_ahead(due(zone)["remind"], run_at, now)
        ScheduledTask.objects.update(anchor_date=None)

        Order.objects.update(zone=another)
        reconcile_now(now)

        assert ScheduledTask.objects.filter(task_key="deadline.remind").count() == 1

    def test_is_done_again_where_it_may_be_of_two_days(self, due, run_at, now):
        """Midnight in Auckland is noon in UTC, which is midnight on the other side of the date line."""
        done_ahead(due(AUCKLAND)["remind"], run_at, now)
        ScheduledTask.objects.update(anchor_date=None)

        Order.objects.update(zone=BERLIN)
        reconcile_now(now)

        assert ScheduledTask.objects.filter(task_key="deadline.remind").count() == 2

    def test_that_moved_it_and_left_the_day_of_before_is_told_by_its_midnight(self, due, run_at, now):
        """While old and new workers run side by side."""
        row = due(BERLIN)["remind"]
        save(due_on=DUE_ON + timedelta(days=5))
        ScheduledTask.objects.update(anchor_date=DUE_ON)
        done_ahead(row, run_at, now)

        Order.objects.update(due_on=DUE_ON)
        reconcile_now(now)

        assert ScheduledTask.objects.filter(task_key="deadline.remind").count() == 2
