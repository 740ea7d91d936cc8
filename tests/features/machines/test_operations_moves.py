"""Emit moves machines: by the table and by nothing else; what is refused has written nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.machines import EVENTS, TABLE, Booking, S, expected, is_whole, no_write, placed
from tests.testapp.models import Account, Customer, Order
from timeline import BACK, IGNORE, STAY, Machine, Timeline, TransitionNotAllowed, after, after_run, created, task
from timeline.exceptions import (
    InvalidInput,
    KeyConflict,
    MoveNotAllowed,
    NoOpenRun,
    UnknownEvent,
    UnknownMachineEvent,
    UnknownTimeline,
    WrongEntity,
)
from timeline.features.machines.edges import see_edges
from timeline.features.sweep.verbs import sweep
from timeline.lifecycle import State
from timeline.models import Event, RunEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, emit_many, enroll, foreseen, leave, preview, reconcile, relabel, start, start_many
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


@dataclass
class Given:
    code_ref: str


class Doors(StrEnum):
    OPEN = "open"
    SHUT = "shut"
    GONE = "gone"


class Door(Machine):
    """Opened and shut, until it is gone; with tasks of its own."""

    entity = "testapp.Order"
    starts_on = created()
    initial = Doors.SHUT
    table = {
        Doors.SHUT: {"door.opened": Doors.OPEN, "door.knocked": STAY, "door.seen": IGNORE},
        Doors.OPEN: {"door.shut": Doors.SHUT, "booking.cancelled": Doors.GONE},
        Doors.GONE: {},
    }
    payloads = {"door.opened": Given}

    @task(after(days=5))
    def oil(self, order): ...


class Keyed(Machine):
    """A run of its own for each number."""

    entity = "testapp.Order"
    starts_on = "line.added"
    key = "number"
    initial = "new"
    table = {"new": {"line.packed": "packed"}, "packed": {"line.sent": "sent"}, "sent": {}}


class Light(Machine):
    """The system's: there is one."""

    initial = "off"
    table = {"off": {"light.on": "on"}, "on": {"light.off": "off", "light.broken": "broken"}, "broken": {}}


class Watching(Timeline):
    entity = "testapp.Order"
    starts_on = "otp.given"
    exits = {"booking.cancelled": "cancelled"}

    @task(after(days=1))
    def look(self, order): ...


@pytest.fixture(autouse=True)
def _machines():
    with only_timelines(Booking):
        yield


class TestPairs:
    @pytest.mark.parametrize("state", S)
    def test_move_as_the_table_says_or_are_refused_with_zero_writes(self, state, order):
        ended = (
            {} if Booking.definition.machine.takes(state) else {"ended_at": "2026-03-01T10:00Z", "end_reason": state}
        )
        run = placed(order, state, back=S.SEARCHING, **ended)
        for event in EVENTS:
            wanted = expected(state, event)
            if wanted is None:
                with no_write(), pytest.raises(TransitionNotAllowed) as refused:
                    emit(event, order)
                assert (refused.value.state, refused.value.event) == (state, event)
                continue
            goes_to = {BACK: S.SEARCHING, STAY: state, IGNORE: state}.get(wanted, wanted)
            if wanted is BACK and (state, S.SEARCHING) not in Booking.definition.machine.edges:
                goes_to = None
            with transaction.atomic():
                if goes_to is None:
                    with no_write(), pytest.raises(TransitionNotAllowed):
                        emit(event, order)
                else:
                    done = emit(event, order)
                    assert [moved.state for moved in done.moved] == ([] if wanted is IGNORE else [goes_to])
                    assert TimelineRun.objects.get(pk=run.pk).state == goes_to
                    assert is_whole(run)
                transaction.set_rollback(True)
        assert TimelineRun.objects.get(pk=run.pk).state == state


class TestMove:
    def test_is_written_with_its_entry(self, order, clock):
        begun = clock.now
        emit("booking.created", order, actor="ada")
        clock.set(begun + timedelta(minutes=1))

        done = emit("booking.submitted", order, actor="bob", key="7")

        [run] = TimelineRun.objects.all()
        assert list(done.moved) == [run]
        assert (run.state, run.state_at, run.back, run.moves) == ("VALIDATING", clock.now, "CREATED", 1)
        entries = RunEntry.objects.order_by("seq").values_list(
            "seq", "at", "from_state", "to_state", "back", "event", "cause_id", "actor"
        )
        assert list(entries) == [
            (0, begun, "", "CREATED", "", "booking.created", run.started_by_id, "ada"),
            (1, clock.now, "CREATED", "VALIDATING", "CREATED", "booking.submitted", done.event.pk, "bob"),
        ]

    def test_goes_back_to_where_it_was_before(self, order):
        emit("booking.created", order)
        for event in [
            "booking.submitted",
            "input.ok",
            "portal.open",
            "auth.captcha",
            "sla.captcha",
            "operator.resolved",
        ]:
            emit(event, order)

        [run] = TimelineRun.objects.all()
        assert run.state == "AUTHENTICATING"
        assert is_whole(run)

    def test_that_stays_enters_the_state_anew(self, order, now, clock):
        run = placed(order, S.OPERATOR_ESCALATED, back=S.SEARCHING, started_at=now)
        clock.set(now + timedelta(hours=4))

        emit("sla.operator", order)

        run.refresh_from_db()
        assert (run.state, run.state_at, run.back, run.moves) == ("OPERATOR_ESCALATED", clock.now, "SEARCHING", 1)
        assert is_whole(run)

    def test_is_none_of_what_the_table_ignores(self, order):
        run = placed(order, S.QUEUED)

        done = emit("portal.heartbeat", order)

        assert done.recorded
        assert not done.moved
        assert Event.objects.filter(name="portal.heartbeat").exists()
        assert TimelineRun.objects.get(pk=run.pk).moves == 0

    def test_into_an_end_ends_the_run_and_cancels_its_tasks(self, clock):
        with only_timelines(Door):
            order = Order.objects.create()
            emit("door.opened", order, payload={"code_ref": "a"})

            done = emit("booking.cancelled", order, actor="ada")

        [run] = done.ended
        [oil] = ScheduledTask.objects.all()
        assert (run.state, run.end_code, run.end_reason, run.ended_at) == ("gone", "exit", "gone", clock.now)
        assert (oil.state, oil.reason_code, oil.reason, oil.actor) == (State.CANCELLED, "exit", "gone", "ada")

    def test_leaves_a_run_open_whose_tasks_have_ended(self, clock):
        with only_timelines(Door):
            order = Order.objects.create()
            clock.advance(days=6)

            assert ScheduledTask.objects.get().state == State.COMPLETED
            assert TimelineRun.objects.get().is_open
            assert emit("door.knocked", order).moved

    def test_takes_names_that_are_members_of_enumerations(self, order):
        class Happening(StrEnum):
            CREATED = "booking.created"
            SUBMITTED = "booking.submitted"

        emit(Happening.CREATED, order)
        emit(Happening.SUBMITTED, order, expect=S.CREATED, machine=Booking)

        assert list(Event.objects.order_by("pk").values_list("name", flat=True)) == [
            "booking.created",
            "booking.submitted",
        ]

    def test_costs_so_many_statements(self, order, django_assert_num_queries):
        emit("booking.created", order)
        emit("booking.submitted", order)
        with CaptureQueriesContext(connection) as queries:
            emit("input.ok", order)

        # Edges are asked for until they are seen committed, which a test never is.
        asked = [
            query["sql"] for query in queries if "timeline_edge" not in query["sql"] and "SAVEPOINT" not in query["sql"]
        ]
        assert len(asked) == (2 if connection.vendor == "postgresql" else 6), asked

    def test_of_the_system_needs_no_entity(self):
        with only_timelines(Light):
            start(Light)

            emit("light.on", expect="off")

            with pytest.raises(MoveNotAllowed, match=r"light of the system|light"):
                emit("light.on")
        assert TimelineRun.objects.get().state == "on"


class TestRefusal:
    def test_says_what_the_state_would_take(self, order):
        placed(order, S.QUEUED)

        with no_write(), pytest.raises(TransitionNotAllowed) as refused:
            emit("otp.given", order)

        assert refused.value.takes == sorted(
            ["booking.cancelled", "portal.closed", "portal.error", "portal.heartbeat", "portal.open", "portal.unknown"]
        )
        assert str(refused.value) == (
            f"state: booking of testapp.order {order.pk} is QUEUED, which does not take 'otp.given'. It takes "
            "booking.cancelled, portal.closed, portal.error, portal.heartbeat, portal.open, portal.unknown."
        )

    def test_leaves_the_callers_transaction_usable(self, order):
        placed(order, S.QUEUED)
        with transaction.atomic():
            order.note = "kept"
            order.save()
            with pytest.raises(TransitionNotAllowed):
                emit("otp.given", order)
            emit("portal.open", order)

        order.refresh_from_db()
        assert order.note == "kept"
        assert TimelineRun.objects.get().state == "AUTHENTICATING"

    def test_of_a_run_that_has_ended_reads_the_last_one(self, order):
        placed(order, S.BOOKED, ended_at="2026-03-01T10:00Z", end_reason="BOOKED")
        placed(order, S.EXPIRED, ended_at="2026-03-01T11:00Z", end_reason="EXPIRED")

        with (
            no_write(),
            pytest.raises(TransitionNotAllowed, match=r"is EXPIRED, which does not take 'input.ok'. It has ended"),
        ):
            emit("input.ok", order)

    def test_of_a_run_that_somebody_ended_by_hand(self, order):
        emit("booking.created", order)
        leave(Booking, order, reason="double")

        with no_write(), pytest.raises(TransitionNotAllowed, match=r"is CREATED.*It has ended"):
            emit("booking.submitted", order)

    def test_is_none_where_the_event_starts_another_run(self, order):
        class Again(Machine):
            entity = "testapp.Order"
            starts_on = "door.opened"
            initial = "open"
            table = {"open": {"door.shut": "shut", "door.opened": STAY}, "shut": {}}

        with only_timelines(Again):
            emit("door.opened", order)
            emit("door.opened", order)
            emit("door.shut", order)
            started = emit("door.opened", order).started

        assert [run.state for run in started] == ["open"]
        assert sorted(TimelineRun.objects.values_list("state", "moves")) == [("open", 0), ("shut", 2)]

    def test_is_none_of_the_same_event_recorded_before(self, order):
        emit("booking.created", order)
        first = emit("booking.submitted", order, key="hook-1")
        emit("input.ok", order)

        again = emit("booking.submitted", order, key="hook-1", expect=S.CREATED)

        assert (again.recorded, again.event.pk, again.moved) == (False, first.event.pk, ())
        assert TimelineRun.objects.get().moves == 2
        with pytest.raises(KeyConflict):
            emit("booking.submitted", order, key="hook-1", payload={"other": 1})

    def test_is_none_where_no_run_has_begun(self, order):
        """The event may be for others, and the machine begin later."""
        done = emit("otp.given", order)

        assert done.recorded
        assert not done.moved

    def test_is_of_a_state_that_the_table_does_not_know_any_more(self, order):
        placed(order, "PARKED")

        with no_write(), pytest.raises(TransitionNotAllowed, match=r"PARKED.*does not know this state"):
            emit("booking.cancelled", order)

    def test_is_not_of_a_run_that_began_before_it_was_a_machines(self, order, now):
        """Which is in no state, and ends as it would have."""
        run = TimelineRun.objects.create(
            timeline="booking", entity_label="testapp.order", entity_id=str(order.pk), started_at=now
        )

        done = emit("booking.submitted", order)
        reconcile(order)

        run.refresh_from_db()
        assert (done.recorded, done.moved, run.is_finished) == (True, (), True)


class TestUnknown:
    @pytest.mark.parametrize("options", [{"machine": Booking}, {"machine": "booking"}, {"expect": S.QUEUED}])
    def test_to_the_machine_raises_before_any_query(self, order, options, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(UnknownMachineEvent, match=r"'otp.given'"):
            emit("otp.givn", order, **options)

    def test_to_every_machine_is_an_ordinary_event(self, order):
        placed(order, S.QUEUED)

        assert emit("weather.changed", order).recorded

    def test_events_of_a_table_are_known_where_events_are_strict(self, order, settings):
        settings.TIMELINE = {**settings.TIMELINE, "STRICT_EVENTS": True}
        placed(order, S.QUEUED)

        assert emit("portal.open", order).moved
        with pytest.raises(UnknownEvent, match=r"portal\.open"):
            emit("portal.opn", order)

    def test_starts_and_exits_are_known_to_the_machine(self, order):
        assert emit("booking.created", order, machine=Booking).started

    @pytest.mark.parametrize(
        ("options", "error", "said"),
        [
            ({"expect": "QUED"}, InvalidInput, "expect: 'QUED' is no state of booking. Give one such as QUEUED"),
            ({"expect": 1}, InvalidInput, "expect: 1 is no state"),
            ({"expect": ""}, InvalidInput, "expect: .* is no state"),
            ({"machine": "bookng"}, UnknownTimeline, "bookng"),
            ({"machine": "watching"}, InvalidInput, "machine: 'watching' is a timeline without a table"),
        ],
    )
    def test_wish_raises_before_any_query(self, order, options, error, said, django_assert_num_queries):
        with (
            only_timelines(Booking, Watching),
            django_assert_num_queries(0),
            pytest.raises(error, match=said),
        ):
            emit("otp.given", order, **options)

    def test_entity_of_another_machine_raises_before_any_query(self, user, django_assert_num_queries):
        with django_assert_num_queries(0), pytest.raises(WrongEntity, match=r"'booking' is about testapp.order"):
            emit("otp.given", user, machine=Booking)

    def test_entity_without_a_machine_raises_before_any_query(self, user, django_assert_num_queries):
        with (
            django_assert_num_queries(0),
            pytest.raises(InvalidInput, match=r"expect: no machine is about this entity"),
        ):
            emit("otp.given", user, expect="QUEUED")

    def test_machine_of_two_has_to_be_named(self, order, django_assert_num_queries):
        with (
            only_timelines(Booking, Door),
            django_assert_num_queries(0),
            pytest.raises(InvalidInput, match=r"expect: several machines take booking.cancelled: booking, door"),
        ):
            emit("booking.cancelled", order, expect=S.QUEUED)


class TestExpect:
    def test_lets_a_run_move_that_is_there(self, order):
        placed(order, S.QUEUED)

        assert emit("portal.open", order, expect=S.QUEUED).moved[0].state == "AUTHENTICATING"

    def test_refuses_one_that_is_elsewhere_though_it_would_take_it(self, order):
        placed(order, S.SEARCHING)

        with no_write(), pytest.raises(TransitionNotAllowed, match=r"is SEARCHING, not QUEUED as expected") as refused:
            emit("booking.cancelled", order, expect=S.QUEUED)

        assert refused.value.expected == "QUEUED"

    def test_sees_that_what_is_ignored_is_expected(self, order):
        placed(order, S.SEARCHING)

        with pytest.raises(TransitionNotAllowed, match=r"as expected"):
            emit("portal.heartbeat", order, expect=S.QUEUED)

    @pytest.mark.parametrize("options", [{"expect": S.QUEUED}, {"machine": Booking}])
    def test_refuses_where_there_is_no_run(self, order, options):
        with no_write(), pytest.raises(NoOpenRun, match=r"booking"):
            emit("portal.open", order, **options)


class TestPayload:
    def test_has_to_be_of_the_type_declared(self, django_assert_num_queries):
        with only_timelines(Door):
            order = Order.objects.create()
            with django_assert_num_queries(0), pytest.raises(InvalidInput, match=r"payload: does not fit door.opened"):
                emit("door.opened", order, payload={"code": "1234"})

            assert emit("door.opened", order, payload={"code_ref": "1"}).moved


class TestSeveral:
    def test_move_together_or_not_at_all(self, order):
        with only_timelines(Booking, Door):
            run = placed(order, S.QUEUED)
            door = placed(order, Doors.SHUT, machine=Door)

            with no_write(), pytest.raises(TransitionNotAllowed, match=r"door of .* is shut, which does not take"):
                emit("booking.cancelled", order)
            assert not Event.objects.exists()

            emit("door.opened", order, payload={"code_ref": "a"})
            done = emit("booking.cancelled", order)

        assert {moved.pk: moved.state for moved in done.moved} == {run.pk: "CANCELLED", door.pk: "gone"}
        assert {ended.pk for ended in done.ended} == {run.pk, door.pk}

    def test_one_that_has_ended_keeps_no_other_from_moving(self, order):
        """Nor does it after it was pruned: what an event may do must not depend on how long rows are kept."""
        with only_timelines(Booking, Door):
            over = placed(order, S.FAILED, ended_at=timezone.now(), end_code="exit", end_reason="FAILED")
            door = placed(order, Doors.OPEN, machine=Door)

            with no_write(), pytest.raises(TransitionNotAllowed, match="FAILED") as refused:
                emit("booking.cancelled", order, machine=Booking)
            done = emit("booking.cancelled", order)
            with no_write(), pytest.raises(TransitionNotAllowed) as both:
                emit("booking.cancelled", order)

        assert refused.value.ended
        assert both.value.ended
        assert [(moved.pk, moved.state) for moved in done.moved] == [(door.pk, "gone")]
        over.refresh_from_db()
        assert (over.state, over.moves) == ("FAILED", 0)

    def test_each_entity_of_many_is_asked_of_its_own(self, order):
        with only_timelines(Booking, Door):
            placed(order, S.FAILED, ended_at=timezone.now(), end_code="exit", end_reason="FAILED")
            emit("door.opened", Order.objects.create(), payload={"code_ref": "a"})

            with no_write(), pytest.raises(TransitionNotAllowed, match=f"{order.pk} "):
                emit_many("booking.cancelled", Order.objects.all())

    def test_meanings_of_an_event_all_happen(self, order):
        with only_timelines(Booking, Watching):
            placed(order, S.AUTH_OTP_REQUIRED)

            done = emit("otp.given", order)
            over = emit("booking.cancelled", order)

        assert ([run.timeline for run in done.started], [run.state for run in done.moved]) == (
            ["watching"],
            ["AUTH_OTP_SUBMITTING"],
        )
        assert sorted(run.timeline for run in over.ended) == ["booking", "watching"]

    def test_runs_of_keys_move_each_by_its_own(self, order):
        with only_timelines(Keyed):
            for number in (1, 2):
                emit("line.added", order, payload={"number": number})

            emit("line.packed", order, payload={"number": 2})
            with pytest.raises(InvalidInput, match=r"number"):
                emit("line.packed", order)
            with pytest.raises(TransitionNotAllowed):
                emit("line.sent", order, payload={"number": 1})
            emit("line.sent", order, payload={"number": 2})
            with pytest.raises(TransitionNotAllowed, match=r"has ended"):
                emit("line.sent", order, payload={"number": 2})
            emit("line.packed", order, payload={"number": 1})

        assert sorted(TimelineRun.objects.values_list("key", "state")) == [("1", "packed"), ("2", "sent")]

    def test_models_of_a_family_are_one_entity(self):
        class Visit(Machine):
            entity = "testapp.Customer"
            initial = "new"
            table = {"new": {"visit.made": "made"}, "made": {}}

        with only_timelines(Visit):
            customer = Customer.objects.create()
            start(Visit, customer)

            done = emit("visit.made", Account.objects.get(pk=customer.pk))

        assert [run.state for run in done.moved] == ["made"]


class TestMany:
    def orders(self, count):
        return Order.objects.bulk_create([Order() for _ in range(count)])

    def test_move_in_a_fixed_number_of_statements(self):
        counts = []
        for number in (10, 300):
            orders = self.orders(number)
            start_many(Booking, orders)
            see_edges(using="default")  # As whoever polls does.
            emit_many("booking.submitted", orders[:1])
            emit_many("booking.submitted", orders[1:])
            with CaptureQueriesContext(connection) as queries:
                done = emit_many("input.ok", orders)
            counts.append(len(queries))
            assert (done.recorded, done.moved) == (number, number)

        assert counts[0] == counts[1]
        assert set(TimelineRun.objects.values_list("state", "moves", "back")) == {("QUEUED", 2, "VALIDATING")}
        assert all(map(is_whole, TimelineRun.objects.all()[:20]))

    def test_begin_with_an_entry_each(self):
        orders = self.orders(300)

        start_many(Booking, orders)
        again = start_many(Booking, orders)

        assert (again.started, again.again) == (0, 300)
        assert RunEntry.objects.count() == 300
        assert set(RunEntry.objects.values_list("seq", "to_state")) == {(0, "CREATED")}
        assert all(map(is_whole, TimelineRun.objects.all()[:5]))

    def test_to_an_end_end_their_runs(self):
        orders = self.orders(5)
        start_many(Booking, orders)

        done = emit_many("booking.cancelled", orders)

        assert (done.moved, done.ended) == (5, 5)

    def test_are_refused_whole_if_one_refuses(self):
        orders = self.orders(5)
        start_many(Booking, orders)
        emit("booking.cancelled", orders[3])

        with no_write(), pytest.raises(TransitionNotAllowed, match=f"testapp.order {orders[3].pk} is"):
            emit_many("booking.submitted", orders)

        assert TimelineRun.objects.filter(state="CREATED").count() == 4

    def test_go_on_where_a_key_says_that_it_was_recorded(self):
        orders = self.orders(5)
        start_many(Booking, orders)
        emit_many("booking.submitted", orders[:2], key="a")

        done = emit_many("booking.submitted", orders, key="a")

        assert (done.recorded, done.again, done.moved) == (3, 2, 3)

    def test_expect_a_state_of_each(self):
        orders = self.orders(3)
        start_many(Booking, orders)
        emit_many("booking.submitted", orders[:1])

        with pytest.raises(TransitionNotAllowed, match=r"not CREATED as expected"):
            emit_many("booking.cancelled", orders, expect=S.CREATED)

    @pytest.mark.parametrize(
        ("options", "error"),
        [({}, UnknownMachineEvent), ({"expect": "QUED"}, InvalidInput), ({"expect": S.QUEUED}, None)],
    )
    def test_of_a_query_are_refused_before_it_is_read(self, options, error, django_assert_num_queries):
        name = "portal.opn" if error is UnknownMachineEvent else "portal.open"
        if error is None:
            assert emit_many(name, Order.objects.all(), machine=Booking, **options).moved == 0
            return
        with django_assert_num_queries(0), pytest.raises(error):
            emit_many(name, Order.objects.all(), machine=Booking, **options)

    def test_twice_the_same_moves_twice(self):
        [order] = self.orders(1)
        with only_timelines(Light, Door):
            start_many(Door, [order])
            emit_many("door.knocked", [order, order])

        assert TimelineRun.objects.get().moves == 2


class TestAfterTheEnd:
    def test_what_follows_a_machine_begins(self, order):
        class Follower(Timeline):
            entity = "testapp.Order"
            starts_on = after_run(Booking, ended="exit")

            @task(after(days=1))
            def thank(self, order): ...

        with only_timelines(Booking, Follower):
            placed(order, S.VERIFYING)
            emit("booking.verified", order)

        assert sorted(TimelineRun.objects.values_list("timeline", "end_reason")) == [
            ("booking", "BOOKED"),
            ("follower", ""),
        ]

    def test_a_deleted_entity_takes_its_machine_with_it(self, order):
        run = placed(order, S.QUEUED)
        with only_timelines(Booking):
            order.delete()

        run.refresh_from_db()
        assert (run.state, run.end_code) == ("QUEUED", "entity_gone")

    def test_relabel_takes_a_machine_along(self, order):
        run = placed(order, S.QUEUED)
        TimelineRun.objects.update(entity_label="testapp.basket")

        relabel("testapp.basket", "testapp.order")

        assert emit("portal.open", order).moved == (run,)


class TestOtherVerbs:
    def test_preview_and_foresee_a_machine(self, order):
        with only_timelines(Door):
            assert [line.task_key for line in preview(Door, order)] == ["door.oil"]
            start(Door, order)
            assert foreseen(order) == []

    def test_enroll_begins_machines(self, order):
        with only_timelines(Door):
            enroll(Door, Order.objects.all())

        assert (TimelineRun.objects.get().state, RunEntry.objects.count()) == ("shut", 1)

    def test_reconcile_and_the_sweep_leave_a_machine_open_that_has_no_task(self, order, now):
        run = placed(order, S.QUEUED)

        reconcile(order)
        sweep(now=now + timedelta(days=1), using="default")

        run.refresh_from_db()
        assert run.is_open


class TestHostWithoutMachines:
    def test_pays_nothing(self, order):
        with only_timelines(Watching), CaptureQueriesContext(connection) as queries:
            emit("otp.given", order)
            emit("booking.cancelled", order)

        said = " ".join(query["sql"] for query in queries)
        assert "timeline_edge" not in said
        assert "timeline_runentry" not in said
        assert "timeline_move_runs" not in said
        assert "timeline_move_at_once" not in said

    def test_has_runs_without_states(self, order):
        with only_timelines(Watching):
            emit("otp.given", order)

        assert set(TimelineRun.objects.values_list("state", "state_at", "back", "moves")) == {("", None, "", 0)}

    def test_may_begin_a_run_of_each_in_one_event(self, order):
        class Also(Machine):
            entity = "testapp.Order"
            starts_on = "otp.given"
            initial = "new"
            table = {"new": {"also.done": "done"}, "done": {}}

        with only_timelines(Watching, Also):
            emit("otp.given", order)

        assert sorted(TimelineRun.objects.values_list("timeline", "state")) == [("also", "new"), ("watching", "")]
        assert RunEntry.objects.count() == 1


def test_the_table_has_28_states():
    assert len(S) == 28
    assert set(S) == {state for state in TABLE if isinstance(state, S)}
