"""What becomes of tasks that were due before their run began, of those who were there before their timeline."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Machine, Timeline, after, at, every, on, task, window
from timeline.exceptions import InvalidInput
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.operations.start import Past, check_past
from timeline.shortcuts import enroll
from timeline.testing import only_timelines

DAY = timedelta(days=1)


class Stay(Timeline):
    """Reminds, ends, looks again; and greets each week."""

    entity = "testapp.Order"

    @task(after(days=10))
    def remind(self, order):
        return None

    @task(at("ships_at"))
    def ship(self, order):
        return None

    @task(after(ship, days=2))
    def ask(self, order):
        return None


class Weekly(Timeline):
    entity = "testapp.Order"

    @task(every(days=7, most=9))
    def greet(self, order):
        return None


class Windows(Timeline):
    """Due at the start, within hours of each kind."""

    entity = "testapp.Order"

    @task(after(hours=0), window=window("09:00-17:00", zone="UTC"))
    def next(self, order):
        return None

    @task(after(hours=0), window=window("09:00-17:00", outside="previous", zone="UTC"))
    def before(self, order):
        return None

    @task(after(hours=0), window=window("09:00-17:00", outside="cancel", zone="UTC"))
    def cancelled_outside(self, order):
        return None


class Waits(Machine):
    entity = "testapp.Order"
    initial = "asked"
    table = {"asked": {"answered": "over", "late": "over"}, "over": {}}
    timers = {"late": at("ships_at")}

    @task(on("asked", hours=1))
    def look(self, order):
        return None


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)
    with only_timelines(Stay, Weekly, Waits, Windows):
        yield


@pytest.fixture
def order(now):
    """It should have been shipped yesterday."""
    return Order.objects.create(ships_at=now - DAY)


def rows_of(order):
    rows = ScheduledTask.objects.filter(entity_id=str(order.pk)).order_by("task_key", "revision")
    return [(row.task_name, str(row.state), row.reason_code) for row in rows]


class TestPast:
    @pytest.mark.parametrize(
        ("past", "stands"),
        [
            ("run", ("available", "")),
            ("skip", ("cancelled", "operator")),
            ("expire", ("cancelled", "expired")),
        ],
    )
    def test_is_run_or_cancelled_while_what_is_to_come_stays(self, order, now, past, stands):
        tally = enroll(Stay, [order], started_at=now, past=past, actor="ada")

        assert (tally.started, tally.tasks, tally.cancelled) == (1, 2, int(past != "run"))
        assert rows_of(order) == [("remind", "scheduled", ""), ("ship", *stands)]
        ended = LogEntry.objects.filter(to_state="cancelled")
        assert [entry.actor for entry in ended] == ["ada"] * tally.cancelled

    @pytest.mark.parametrize(
        ("hours_ago", "ends"),
        [
            # For eight in the evening, due at nine the next morning, and it is eight: it has not been missed.
            (12, ["before", "cancelled_outside"]),
            # For eight in the evening of the day before that: nine has passed.
            (36, ["before", "cancelled_outside", "next"]),
        ],
    )
    def test_is_not_what_is_due_when_its_window_opens(self, clock, hours_ago, ends):
        clock.set(datetime(2026, 11, 25, 8, tzinfo=UTC))
        began = clock.now - timedelta(hours=hours_ago)

        tally = enroll(Windows, [Order.objects.create()], started_at=began, past="skip")

        cancelled = ScheduledTask.objects.filter(state="cancelled").order_by("task_key")
        assert [row.task_name for row in cancelled] == ends
        assert tally.cancelled == len(ends)
        assert {row.state for row in ScheduledTask.objects.exclude(pk__in=cancelled)} <= {"scheduled"}

    def test_of_two_runs_is_told_apart(self, clock):
        clock.set(datetime(2026, 11, 25, 8, tzinfo=UTC))
        orders = [Order.objects.create(ships_at=clock.now - timedelta(hours=hours)) for hours in (12, 36)]

        enroll(Windows, orders, started_at="ships_at", past="skip")

        rows = ScheduledTask.objects.filter(task_key="windows.next")
        states = {row.entity_id: str(row.state) for row in rows}
        assert states == {str(orders[0].pk): "scheduled", str(orders[1].pk): "cancelled"}

    @pytest.mark.parametrize(("past", "revisions"), [("skip", 1), ("expire", 2)])
    def test_comes_again_with_another_date_only_if_it_has_expired(self, order, now, past, revisions):
        enroll(Stay, [order], past=past)

        order.ships_at = now + 5 * DAY
        order.save()

        assert ScheduledTask.objects.filter(task_key="stay.ship").count() == revisions

    def test_ends_a_run_of_which_nothing_is_left(self, order, now, clock):
        enroll(Stay, [order], started_at=now - 90 * DAY, past="expire")

        assert TimelineRun.objects.get().ended_at == now
        assert clock.advance(days=99) == []

    def test_is_told_from_what_begins_now(self, order, now):
        """What is due at the moment of the start itself was not due before."""
        order.ships_at = now
        order.save()

        assert enroll(Stay, [order], past="skip").cancelled == 0

    def test_lets_what_is_repeated_go_on_with_the_next_that_is_to_come(self, order, now):
        enroll(Weekly, [order], started_at=now - 24 * DAY, past="expire")

        last = ScheduledTask.objects.order_by("occurrence").last()
        assert (str(last.state), last.nominal_at) == ("scheduled", now + 4 * DAY)

    def test_leaves_timers_of_machines_as_they_are(self, order, clock):
        """One that does not fire would leave its run at rest for ever."""
        enroll(Waits, [order], past="skip")

        clock.advance(minutes=1)

        assert TimelineRun.objects.get().state == "over"

    def test_takes_as_many_statements_for_many_as_for_few(self, now):
        def statements(count):
            orders = [Order.objects.create(ships_at=now - DAY) for _ in range(count)]
            with CaptureQueriesContext(connection) as queries:
                assert enroll(Stay, orders, started_at=now - 90 * DAY, past="expire").cancelled == 2 * count
            return len(queries)

        statements(2)
        assert statements(50) == statements(3)


class TestCheckPast:
    def test_names_what_does_not_do(self, order):
        assert check_past("run") is Past.RUN
        with pytest.raises(InvalidInput, match=r"past: 'never' is not allowed\. Give one of run, skip, expire"):
            enroll(Stay, [order], past="never")
