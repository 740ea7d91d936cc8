"""Emit: record an event once, end runs, start runs, all in the caller's transaction."""

from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as bounded
from hypothesis import strategies as st

from tests.acting import nothing_is_written
from tests.testapp.models import Order, OrderProxy, Parcel
from timeline import Timeline, after, at, created, task
from timeline.exceptions import KeyConflict
from timeline.lifecycle import State
from timeline.models import EntityRef, Event, LogEntry, ScheduledTask, TimelineRun
from timeline.payloads import is_secret
from timeline.testing import autostart, only_timelines

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
NAMES = TEXTS.filter(lambda text: not is_secret(text))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = ("order.placed", "order.reopened")
    exits = {"order.closed": "closed", "order.reopened": "reopened"}

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(at("ships_at"))
    def ship(self, order):
        return None


class Survey(Timeline):
    entity = "testapp.Order"
    starts_on = "order.closed"
    exits = {"survey.refused": "refused"}

    @task(after(days=3))
    def ask(self, order):
        return None


class Arrival(Timeline):
    entity = "testapp.Parcel"
    starts_on = "order.placed"

    @task(after(days=1))
    def track(self, parcel):
        return None


class Sweep(Timeline):
    starts_on = "order.placed"

    @task(after(days=1))
    def sweep(self):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Delivery, Survey, Arrival, Sweep):
        yield


class TestEmit:
    def test_records_the_event(self, emit_at, order, now):
        emission = emit_at("order.seen", order, now, key="k", payload={"n": 1}, actor="ada")

        event = Event.objects.get()
        assert emission.event == event
        assert (emission.recorded, emission.started, emission.ended) == (True, (), ())
        assert (event.name, event.key, event.payload, event.actor) == ("order.seen", "k", {"n": 1}, "ada")
        assert (event.entity_ref, event.occurred_at, event.recorded_at) == (
            EntityRef("testapp.order", str(order.pk)),
            now,
            now,
        )

    def test_starts_the_runs_that_start_on_it(self, emit_at, order, now):
        emission = emit_at("order.placed", order, now)

        run = TimelineRun.objects.get()
        assert emission.started == (run,)
        assert (run.timeline, run.started_at, run.started_by) == ("delivery", now, emission.event)
        row = ScheduledTask.objects.get()
        assert (row.task_key, row.state, row.scheduled_at) == (
            "delivery.pack",
            State.SCHEDULED,
            now + timedelta(days=1),
        )
        assert (row.cause, row.run) == (emission.event, run)

    def test_starts_nothing_while_a_run_is_open(self, emit_at, order, now):
        emit_at("order.placed", order, now)

        emission = emit_at("order.placed", order, now + timedelta(hours=1))

        assert (emission.recorded, emission.started) == (True, ())
        assert TimelineRun.objects.get().started_at == now
        assert ScheduledTask.objects.count() == 1

    def test_starts_nothing_when_autostart_is_off(self, emit_at, order, now):
        with autostart(False):
            emission = emit_at("order.placed", order, now)

        assert (emission.recorded, emission.started) == (True, ())
        assert not TimelineRun.objects.exists()

    def test_ends_runs_also_when_autostart_is_off(self, emit_at, order, now):
        emit_at("order.placed", order, now)

        with autostart(False):
            emit_at("order.closed", order, now)

        assert TimelineRun.objects.get().end_reason == "closed"

    def test_ends_the_runs_it_exits(self, emit_at, order, now):
        emit_at("order.placed", order, now)
        later = now + timedelta(hours=1)

        emission = emit_at("order.closed", order, later, actor="ada")

        [run] = emission.ended
        run.refresh_from_db()
        assert (run.timeline, run.ended_at, run.end_reason) == ("delivery", later, "closed")
        row = ScheduledTask.objects.get(task_key="delivery.pack")
        assert (row.state, row.reason_code, row.reason, row.actor) == (State.CANCELLED, "exit", "closed", "ada")

    def test_ends_no_run_of_another_entity(self, emit_at, order, now):
        emit_at("order.placed", order, now)

        emission = emit_at("order.closed", Order.objects.create(), now)

        assert emission.ended == ()
        assert TimelineRun.objects.get(timeline="delivery").is_open

    def test_ends_no_run_that_the_event_is_no_exit_of(self, emit_at, order, now):
        emit_at("order.placed", order, now)

        emit_at("survey.refused", order, now)

        assert TimelineRun.objects.get().is_open

    def test_ends_every_run_of_the_timeline_whatever_its_key(self, emit_at, start_at, order, now):
        for key in ("a", "b"):
            start_at("delivery", order, now, key=key)

        emission = emit_at("order.closed", order, now)

        assert len(emission.ended) == 2
        assert not TimelineRun.objects.open().filter(timeline="delivery").exists()

    def test_exits_before_it_starts(self, emit_at, order, now):
        """The same event ends the run there is and begins the next."""
        first = emit_at("order.placed", order, now).started[0]
        later = now + timedelta(hours=1)

        emission = emit_at("order.reopened", order, later)

        first.refresh_from_db()
        assert emission.ended == (first,)
        assert first.end_reason == "reopened"
        assert emission.started[0].started_at == later
        assert ScheduledTask.objects.open().get().run == emission.started[0]

    def test_does_not_end_what_it_started_itself(self, emit_at, run_at, order, now):
        """At the last look, too, the event that began the run is not its exit."""
        emit_at("order.reopened", order, now)

        done = run_at(ScheduledTask.objects.get(), now + timedelta(days=1))

        assert done.state == State.COMPLETED

    def test_counts_from_when_it_happened(self, emit_at, order, now):
        happened = now - timedelta(hours=20)

        emit_at("order.placed", order, now, occurred_at=happened)

        event, run, row = Event.objects.get(), TimelineRun.objects.get(), ScheduledTask.objects.get()
        assert (event.occurred_at, event.recorded_at, run.started_at) == (happened, now, happened)
        assert (row.state, row.scheduled_at) == (State.SCHEDULED, now + timedelta(hours=4))

    def test_makes_a_row_available_that_is_due_already(self, emit_at, order, now):
        emit_at("order.placed", order, now, occurred_at=now - timedelta(days=9))

        assert ScheduledTask.objects.get().state == State.AVAILABLE

    def test_starts_what_is_about_that_kind_of_entity(self, emit_at, now):
        emit_at("order.placed", Parcel.objects.create(), now)

        assert TimelineRun.objects.get().timeline == "arrival"

    def test_starts_system_timelines_where_no_entity_is_given(self, emit_at, now):
        emission = emit_at("order.placed", None, now)

        assert [run.timeline for run in emission.started] == ["sweep"]
        assert Event.objects.get().entity_ref == EntityRef("", "")

    def test_takes_a_proxy_for_the_entity_it_is(self, emit_at, order, now):
        emit_at("order.placed", OrderProxy.objects.get(), now)

        assert TimelineRun.objects.get().entity_ref == EntityRef("testapp.order", str(order.pk))

    def test_takes_a_key_written_otherwise_for_the_entity_it_is(self, emit_at, now):
        """A model takes its key as text, too, and keeps it so until it is read anew."""
        parcel = Parcel()
        parcel.id = parcel.id.hex.upper()
        parcel.save()

        emission = emit_at("order.placed", parcel, now)

        [run] = emission.started
        assert run.is_open
        assert run.entity_id == str(Parcel.objects.get().pk)


class TestKeys:
    def test_record_an_event_once(self, emit_at, order, now):
        first = emit_at("order.placed", order, now, key="k", payload={"n": 1})
        again = emit_at("order.placed", order, now + timedelta(hours=1), key="k", payload={"n": 1})

        assert (again.recorded, again.event, again.started) == (False, first.event, ())
        assert (Event.objects.count(), TimelineRun.objects.count()) == (1, 1)

    def test_do_not_start_again_what_has_ended_meanwhile(self, emit_at, order, now):
        emit_at("order.placed", order, now, key="k")
        emit_at("order.closed", order, now)

        emit_at("order.placed", order, now, key="k")

        assert not TimelineRun.objects.open().filter(timeline="delivery").exists()

    @pytest.mark.parametrize("number", [1e23, -1e300, 5e-324, 0.1, 1e16, -0.0, 10**40, 2**53 + 1])
    def test_know_a_number_again_however_it_was_stored(self, emit_at, order, now, number):
        """PostgreSQL keeps numbers by value: what was written 1e+23 comes back as a whole number."""
        emit_at("order.placed", order, now, key="k", payload={"n": [number]})

        assert not emit_at("order.placed", order, now, key="k", payload={"n": [number]}).recorded

    @pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (0.0, False), (2**53, 2**53 + 1), (1, "1")])
    def test_tell_apart_what_only_python_takes_for_the_same(self, emit_at, order, now, one, other):
        emit_at("order.placed", order, now, key="k", payload={"n": one})

        with pytest.raises(KeyConflict):
            emit_at("order.placed", order, now, key="k", payload={"n": other})

    @bounded(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(payload=st.dictionaries(NAMES, JSON, max_size=4))
    def test_record_whatever_may_be_said_once(self, emit_at, order, now, payload):
        with transaction.atomic():
            emit_at("order.seen", order, now, key="k", payload=payload)
            again = emit_at("order.seen", order, now, key="k", payload=payload)
            transaction.set_rollback(True)

        assert not again.recorded

    def test_refuse_another_payload(self, emit_at, order, now):
        emit_at("order.placed", order, now, key="k", payload={"n": 1})

        with pytest.raises(KeyConflict) as conflict:
            emit_at("order.placed", order, now, key="k", payload={"n": 2})

        assert conflict.value.key == "k"
        assert Event.objects.get().payload == {"n": 1}

    def test_refuse_it_and_leave_the_callers_transaction_whole(self, emit_at, order, now):
        emit_at("order.seen", order, now, key="k", payload={"n": 1})

        with transaction.atomic():
            with pytest.raises(KeyConflict):
                emit_at("order.seen", order, now, key="k", payload={"n": 2})
            emit_at("order.placed", order, now)

        assert ScheduledTask.objects.count() == 1

    @pytest.mark.parametrize("other", ["name", "entity", "key"])
    def test_are_of_one_name_and_entity(self, emit_at, order, now, other):
        emit_at("order.seen", order, now, key="k")

        emission = emit_at(
            "order.read" if other == "name" else "order.seen",
            Order.objects.create() if other == "entity" else order,
            now,
            key="l" if other == "key" else "k",
            payload={"n": 2},
        )

        assert emission.recorded

    def test_left_out_record_each_time(self, emit_at, order, now):
        emit_at("order.seen", order, now)
        emit_at("order.seen", order, now)

        assert Event.objects.count() == 2


class TestRollback:
    def test_of_the_callers_transaction_leaves_nothing(self, emit_at, order, now):
        with transaction.atomic():
            emit_at("order.placed", order, now)
            assert ScheduledTask.objects.exists()
            transaction.set_rollback(True)

        assert nothing_is_written()

    def test_of_an_exit_leaves_the_run_open(self, emit_at, order, now):
        emit_at("order.placed", order, now)

        with transaction.atomic():
            emit_at("order.closed", order, now)
            transaction.set_rollback(True)

        assert TimelineRun.objects.get().is_open
        assert ScheduledTask.objects.get().state == State.SCHEDULED
        assert LogEntry.objects.count() == 0

    def test_of_an_insert_that_starts_a_run_leaves_nothing(self, now, clock):
        class Made(Timeline):
            entity = "testapp.Order"
            starts_on = created()

            @task(after(days=1))
            def work(self, order):
                return None

        with only_timelines(Made), transaction.atomic():
            Order.objects.create()
            assert TimelineRun.objects.exists()
            transaction.set_rollback(True)

        assert nothing_is_written()


class TestQueries:
    def test_are_as_many_for_an_entity_with_a_past_as_for_one_without(self, emit_at, order, now, statements_of):
        plain = statements_of(lambda: emit_at("order.placed", Order.objects.get(), now))
        emit_at("order.closed", order, now)
        for _ in range(100):
            emit_at("order.seen", order, now)

        assert statements_of(lambda: emit_at("order.placed", Order.objects.get(), now)) == plain
