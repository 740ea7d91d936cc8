"""Bursts of events: one row each, which events move, until it is claimed or ends."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Effect, Invoice, Order
from timeline import Debounce, Timeline, after, task
from timeline.exceptions import KeyConflict
from timeline.models import Event, ScheduledTask
from timeline.reading.inventory import inventory
from timeline.shortcuts import cancel, emit, emit_many, explain, move, reconcile, redrive, run_now
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

MINUTES = [timedelta(minutes=number) for number in range(120)]
QUIET, LATEST = MINUTES[5], MINUTES[60]


class Search(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.closed": "closed"}

    @task(after("ships_at", days=1))
    def follow(self, order): ...

    @task(debounce=Debounce(("order.edited", "order.moved"), quiet=QUIET, at_latest=LATEST))
    def rebuild(self, order):
        Effect.objects.create(name=f"{self.event.payload.get('to', '')}×{self.task.payload['burst']['events']}")
        if order.note == "broken":
            raise ValueError("no index")
        if order.note == "closes":
            emit("order.closed", order)
        if order.note == "edits":
            emit("order.edited", order)

    @task(debounce=Debounce("invoice.edited", quiet=QUIET, of="testapp.Invoice", by="order"))
    def total(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Search):
        yield


def rows(name="rebuild", **more):
    return list(ScheduledTask.objects.filter(task_key=f"search.{name}", **more).order_by("created_at", "pk"))


def one(name="rebuild", **more):
    [row] = rows(name, **more)
    return row


def failed_one(order, clock):
    """The only row, which has failed; another one would not fail."""
    Order.objects.update(note="broken")
    with clock.failing():
        emit("order.edited", order)
        clock.advance(days=30)
    failed = one()
    Order.objects.update(note="")
    return failed


class TestEmit:
    def test_makes_a_row_that_is_due_after_quiet(self, order, clock):
        emit("order.edited", order)

        row = one()
        assert (row.state, row.run, row.scheduled_at) == ("scheduled", None, clock.now + QUIET)
        assert row.payload["burst"]["latest_at"] == (clock.now + LATEST).isoformat()

    def test_moves_the_row_that_waits(self, order, clock):
        emit("order.edited", order)
        clock.advance(minutes=3)
        emit("order.moved", order, payload={"to": "b"})

        row = one()
        assert row.scheduled_at == row.planned_at == clock.now + QUIET
        entry = row.log.get()
        assert (entry.reason_code, entry.detail["event"]) == ("waiting", str(Event.objects.latest("recorded_at").pk))
        assert entry.reason.startswith("order.moved came: waits for quiet until ")
        assert " at the latest until " in entry.reason

    def test_tells_the_handler_of_the_last_event_and_how_many(self, order, clock):
        for to in "abc":
            emit("order.edited", order, payload={"to": to})
            clock.advance(minutes=1)
        clock.advance(minutes=10)

        assert one().state == "completed"
        assert Effect.objects.get().name == "c×3"

    def test_moves_it_no_further_than_at_latest(self, order, clock):
        first = clock.now
        for _count in range(20):
            emit("order.edited", order)
            clock.advance(minutes=4)

        done = rows()[0]
        assert (done.state, done.scheduled_at) == ("completed", first + LATEST)
        assert done.payload["burst"]["events"] == 15
        assert len(rows()) == 2

    def test_has_one_run_at_the_end_of_each_period_if_both_are_as_long(self, order, clock):
        first = clock.now

        class Search(Timeline):
            entity = "testapp.Order"

            @task(debounce=Debounce("order.edited", quiet=MINUTES[5], at_latest=MINUTES[5]))
            def rebuild(self, order): ...

        with only_timelines(Search):
            for _minute in range(12):
                emit("order.edited", order)
                clock.advance(minutes=1)

        assert [row.scheduled_at - first for row in rows()] == [MINUTES[5], MINUTES[10], MINUTES[15]]
        assert all(row.log.filter(reason_code="waiting").count() == 0 for row in rows())

    def test_counts_an_event_with_a_key_once(self, order, clock):
        emit("order.edited", order, key="a")
        clock.advance(minutes=1)
        emit("order.edited", order, key="a")
        with pytest.raises(KeyConflict):
            emit("order.edited", order, key="a", payload={"to": "b"})

        row = one()
        assert (row.payload["burst"]["events"], row.scheduled_at) == (1, clock.now - MINUTES[1] + QUIET)

    def test_begins_a_new_burst_after_the_last_has_run(self, order, clock):
        emit("order.edited", order)
        clock.advance(minutes=6)
        emit("order.edited", order)

        assert [row.state for row in rows()] == ["completed", "scheduled"]
        assert [row.occurrence for row in rows()] == ["(burst) 000000000001", "(burst) 000000000002"]

    @pytest.mark.parametrize("state", ["pending", "active", "retryable"])
    def test_begins_a_new_burst_if_the_row_was_claimed(self, order, clock, state):
        emit("order.edited", order)
        before = one()
        leased = {} if state == "retryable" else {"lease_expires_at": clock.now}
        ScheduledTask.objects.update(state="available")
        ScheduledTask.objects.update(state="pending", lease_expires_at=clock.now)
        if state != "pending":
            ScheduledTask.objects.update(state="active", attempt=1, lease_expires_at=clock.now)
        ScheduledTask.objects.update(state=state, **(leased or {"lease_expires_at": None}))
        emit("order.edited", order)

        assert one(state="scheduled").pk != before.pk
        assert one(state=state).payload["burst"]["events"] == 1

    def test_begins_a_new_burst_from_its_own_handler(self, order, clock):
        Order.objects.update(note="edits")
        emit("order.edited", order)
        clock.advance(minutes=5)

        assert [row.state for row in rows()] == ["completed", "scheduled"]

    def test_joins_a_row_that_is_due_and_not_claimed(self, order, clock):
        emit("order.edited", order)
        run_now(one(), reason="look")
        due = one().scheduled_at
        emit("order.edited", order)

        row = one()
        assert (row.state, row.scheduled_at, row.payload["burst"]["events"]) == ("available", due, 2)

    def test_leaves_what_a_person_has_decided(self, order, clock):
        emit("order.edited", order)
        move(one(), at=clock.now + MINUTES[30], reason="later")
        emit("order.edited", order)

        row = one()
        assert (row.scheduled_at, row.payload["burst"]["events"]) == (clock.now + MINUTES[30], 2)

    @pytest.mark.parametrize(
        "said",
        [
            5,
            [],
            {},
            {"events": "x"},
            {"events": 1, "latest_at": "soon"},
            {"events": 1, "latest_at": 7},
            {"events": 1, "latest_at": "2026-03-01"},
            {"events": 1.5, "latest_at": None},
            {"events": 1, "latest_at": "0001-01-01T00:00:00+12:00"},
            {"events": 1, "latest_at": "9999-12-31T23:59:59-12:00"},
        ],
        ids=str,
    )
    def test_counts_anew_if_nobody_can_read_what_the_row_says(self, order, clock, said):
        """Code of the host has written into it. The event of somebody else must not fail for it."""
        emit("order.edited", order)
        ScheduledTask.objects.update(payload={"burst": said, "more": 1})
        clock.advance(minutes=1)
        emit("order.edited", order)

        row = one()
        assert (row.payload["burst"]["events"], row.payload["more"]) == (1, 1)
        assert row.scheduled_at == clock.now + QUIET

    @pytest.mark.parametrize("said", [[], "x", 5], ids=str)
    def test_counts_anew_in_a_payload_that_is_no_object(self, order, clock, said):
        emit("order.edited", order)
        ScheduledTask.objects.update(payload=said)
        emit("order.edited", order)

        assert one().payload["burst"]["events"] == 1

    def test_begins_nothing_where_nothing_starts_by_itself(self, order, settings):
        settings.TIMELINE = {**settings.TIMELINE, "AUTOSTART": False}
        emit("order.edited", order)

        assert rows() == []

    def test_is_undone_with_the_transaction(self, order):
        with transaction.atomic():
            emit("order.edited", order)
            transaction.set_rollback(True)

        assert rows() == []


class TestEmitMany:
    def test_asks_as_often_for_many(self, clock):
        def asked(count):
            orders = Order.objects.bulk_create(Order() for _number in range(count))
            keys = [order.pk for order in orders]
            counts = []
            for _time in range(2):  # The first begins bursts, and the second moves them.
                with CaptureQueriesContext(connection) as queries:
                    emit_many("order.edited", Order.objects.filter(pk__in=keys))
                counts.append(len(queries))
                clock.advance(minutes=1)
            return counts

        few, many = asked(10), asked(1_000)

        assert few == many
        assert {row.payload["burst"]["events"] for row in rows()} == {2}
        assert len(rows()) == 1_010

    def test_makes_one_burst_of_those_that_lead_to_the_same(self, order, clock):
        other = Order.objects.create()
        orders = [order] * 3 + [other] * 2 + [None]
        Invoice.objects.bulk_create(Invoice(order=one) for one in orders)
        emit_many("invoice.edited", Invoice.objects.all())

        counts = {row.entity_id: row.payload["burst"]["events"] for row in rows("total")}
        assert counts == {str(order.pk): 3, str(other.pk): 2}


class TestBy:
    def test_outlives_whose_event_it_was(self, order, clock):
        first, second = Invoice.objects.create(order=order), Invoice.objects.create(order=order)
        emit("invoice.edited", first)
        first.delete()
        clock.advance(minutes=1)
        emit("invoice.edited", second)
        clock.advance(minutes=5)

        assert (one("total").state, one("total").payload["burst"]["events"]) == ("completed", 2)

    def test_has_no_row_where_nothing_leads(self):
        emit("invoice.edited", Invoice.objects.create())

        assert rows("total") == []


class TestEnds:
    def test_by_an_exit(self, order, clock):
        emit("order.edited", order)
        emit("order.edited", other := Order.objects.create())
        emit("order.closed", order, actor="ada")

        ended = one(entity_id=str(order.pk))
        assert (ended.state, ended.reason_code, ended.reason, ended.actor) == ("cancelled", "exit", "closed", "ada")
        assert one(entity_id=str(other.pk)).state == "scheduled"

    def test_spare_the_task_whose_handler_causes_them(self, order, clock):
        Order.objects.update(note="closes")
        emit("order.edited", order)
        clock.advance(minutes=5)

        assert one().state == "completed"

    def test_by_a_person(self, order, clock):
        emit("order.edited", order)
        cancel(one(), reason="no")
        emit("order.edited", order)

        assert [row.state for row in rows()] == ["cancelled", "scheduled"]

    def test_by_the_end_of_the_entity(self, order, clock):
        emit("order.edited", order)
        order.delete()
        clock.advance(minutes=5)

        assert one().state == "cancelled"

    def test_and_is_redriven(self, order, clock):
        failed = failed_one(order, clock)
        redrive(failed, reason="mended")
        emit("order.edited", order)

        assert [(row.revision, row.payload["burst"]["events"]) for row in rows()] == [(failed.revision, 1), (2, 2)]

    def test_and_is_redriven_while_the_next_one_waits(self, order, clock):
        """The next one goes on to wait for quiet: what is run again is due at once."""
        failed = failed_one(order, clock)
        emit("order.edited", order)
        clock.advance(minutes=4)
        redrive(failed, reason="mended")
        emit("order.edited", order)

        waits = one(occurrence="(burst) 000000000002")
        assert (waits.payload["burst"]["events"], waits.scheduled_at) == (2, clock.now + QUIET)
        assert one(revision=2).payload["burst"]["events"] == 1


class TestMovedRow:
    def test_stays_when_all_is_reconciled(self, order, clock):
        emit("order.placed", order)
        emit("order.edited", order)
        clock.advance(minutes=3)
        emit("order.edited", order)
        due = one().scheduled_at
        order.ships_at = clock.now + timedelta(days=3)
        order.save()
        reconcile(order)

        assert one().scheduled_at == due == clock.now + QUIET

    @pytest.mark.parametrize("command", [("timeline_sweep",), ("timeline_prune", "--days", "1")], ids=str)
    def test_stays_when_all_is_looked_after(self, order, clock, command):
        emit("order.edited", order)
        clock.advance(minutes=3)
        emit("order.edited", order)
        before = ScheduledTask.objects.values().get()
        call_command(*command)

        assert ScheduledTask.objects.values().get() == before

    def test_is_no_part_of_a_plan(self, order, clock):
        emit("order.edited", order)
        clock.advance(minutes=3)
        emit("order.edited", order)
        due = one().scheduled_at

        class Search(Timeline):
            entity = "testapp.Order"

            @task(debounce=Debounce("order.edited", quiet=MINUTES[10]))
            def rebuild(self, order): ...

        with only_timelines(Search):
            call_command("timeline_plan", "search")
            call_command("timeline_sweep")

        assert one().scheduled_at == due

    def test_follows_a_new_quiet_with_the_next_event(self, order, clock):
        emit("order.edited", order)
        latest, due = one().payload["burst"]["latest_at"], one().scheduled_at

        class Search(Timeline):
            entity = "testapp.Order"

            @task(debounce=Debounce("order.edited", quiet=MINUTES[10], at_latest=MINUTES[100]))
            def rebuild(self, order): ...

        with only_timelines(Search):
            reconcile(order)
            assert one().scheduled_at == due
            emit("order.edited", order)

            assert one().scheduled_at == clock.now + MINUTES[10]
            assert one().payload["burst"]["latest_at"] == latest


class TestInventory:
    def test_tells_when_it_is_due(self, clock):
        [told, *_others] = inventory(now=clock.now, using="default")
        known = {entry.name: entry.when for entry in told.tasks}

        said = "5 minutes after the last order.edited or order.moved, at the latest 1 hour after the first"
        assert known["rebuild"] == said
        assert known["total"] == "5 minutes after the last invoice.edited"
        assert {said, known["total"]} <= {start.said for start in told.starts}


class TestExplain:
    def test_tells_how_long_it_waits(self, order, clock):
        emit("order.edited", order)
        emit("order.edited", order)

        said = str(explain(one()))
        assert "It stands for 2 events in a burst" in said
        assert "It waits for quiet until " in said
        assert " at the latest." in said

        clock.advance(minutes=5)
        said = str(explain(one()))
        assert "It stands for 2 events in a burst" in said
        assert "It waits for quiet" not in said

    @pytest.mark.parametrize("at", ["2026-03-01T09:00:00", "9999-12-31T23:59:59-12:00"])
    def test_is_silent_of_a_time_that_nobody_can_read(self, order, clock, at):
        emit("order.edited", order)
        ScheduledTask.objects.update(payload={"burst": one().payload["burst"] | {"first_at": at}})

        assert "It stands for" not in str(explain(one()))
