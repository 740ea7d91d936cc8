"""A booking on a hostile portal: where it is stands in a row, whatever dies; what cannot be is refused before it is written."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar
from uuid import UUID

import pytest

from tests.machines import ENDS, TABLE, Booking, S, is_whole, no_write
from tests.testapp.models import Order
from timeline import Machine, Retry, Then, TransitionNotAllowed, after, task
from timeline.dispatch.poll import stage
from timeline.dispatch.rescue import rescue
from timeline.engine.attempts import begin_attempts
from timeline.engine.groups import run
from timeline.lifecycle import State
from timeline.models import RunEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, explain, redrive, start
from timeline.testing import only_timelines
from timeline.timing import EARLIEST

pytestmark = pytest.mark.django_db(transaction=True)

asked: list[UUID] = []
codes: list[str] = []
down: list[Exception] = []


class Portal(Booking):
    """The booking, with two handlers that call the portal; a minute after it was created it signs in."""

    name = "portal"
    errors: ClassVar = {}

    @task(after(minutes=1), atomic=False, retry=Retry(max_attempts=5))
    def authenticate(self, order: Order) -> Then:
        asked.append(self.idempotency_key)
        if down:
            raise down.pop(0)
        return Then("auth.otp_required", channel="sms")

    @task(after(minutes=5), atomic=False)
    def submit_code(self, order: Order) -> Then:
        return Then("auth.ok" if codes and codes.pop() == "1234" else "otp.wrong")


@pytest.fixture(autouse=True)
def _portal(clock):
    asked.clear()
    codes.clear()
    down.clear()
    with only_timelines(Portal):
        yield


@pytest.fixture
def booking():
    order = Order.objects.create()
    start(Portal, order)
    for event in ("booking.submitted", "input.ok", "portal.open"):
        emit(event, order)
    return order


def state():
    run_ = TimelineRun.objects.get()
    assert is_whole(run_)
    return run_.state


def told():
    return [(entry.from_state, entry.to_state) for entry in RunEntry.objects.order_by("seq")]


@pytest.mark.timeline(raises=False)
class TestABooking:
    def test_goes_its_way_and_rests_where_one_can_see_it(self, booking, clock):
        clock.advance(minutes=1)

        assert state() == S.AUTH_OTP_REQUIRED
        assert "Its run is AUTH_OTP_REQUIRED since" in explain(ScheduledTask.objects.get(task_key="portal.submit_code"))

        codes.append("1234")
        emit("otp.given", booking, payload={"code_ref": "vault:7"})
        clock.advance(minutes=4)
        for event in (
            "slot.found",
            "slot.suits",
            "slot.held",
            "form.open",
            "form.done",
            "confirm.ok",
            "booking.verified",
        ):
            emit(event, booking)

        assert state() == S.BOOKED
        assert not TimelineRun.objects.get().is_open
        assert told()[0] == ("", "CREATED")
        assert told()[-1] == ("VERIFYING", "BOOKED")
        assert len(told()) == 14

    def test_is_resumed_exactly_where_it_was_when_its_worker_died(self, booking, clock):
        """Killed in the call: the attempt is lost, the state is not, and the portal is asked again with the same key."""
        clock.set(clock.now + timedelta(minutes=1))
        row = ScheduledTask.objects.get(task_key="portal.authenticate")
        [dead] = begin_attempts([row.pk], token=None, worker="killed", now=clock.now, using="default")
        asked.append(dead.idempotency_key)
        assert state() == S.AUTHENTICATING

        ScheduledTask.objects.filter(pk=row.pk).update(lease_expires_at=EARLIEST)
        rescue(now=clock.now, using="default")
        assert state() == S.AUTHENTICATING
        clock.set(clock.now + timedelta(minutes=1))
        stage(now=clock.now, using="default")
        run(task_ids=[row.pk], clock=lambda: clock.now, using="default")

        assert state() == S.AUTH_OTP_REQUIRED
        assert len(asked) == 2
        assert asked[0] == asked[1]

    def test_that_meets_a_portal_that_is_down_moves_when_it_is_up(self, booking, clock):
        down.append(TimeoutError("portal"))

        clock.advance(minutes=1)
        assert state() == S.AUTHENTICATING
        clock.advance(minutes=2)

        assert state() == S.AUTH_OTP_REQUIRED

    def test_is_refused_what_its_state_does_not_take_before_anything_is_written(self, booking, clock):
        """A code comes late: an operator has the booking by then. The handler's answer is refused, and the attempt says so."""
        clock.advance(minutes=1)
        emit("otp.given", booking)
        emit("portal.unknown", booking)

        clock.advance(minutes=4)

        assert state() == S.OPERATOR_ESCALATED
        row = ScheduledTask.objects.get(task_key="portal.submit_code")
        assert row.state in (State.RETRYABLE, State.DISCARDED)
        assert "OPERATOR_ESCALATED, which does not take 'otp.wrong'" in row.error

    def test_resolved_by_an_operator_goes_back_to_where_it_was(self, booking):
        emit("auth.captcha", booking)
        emit("sla.captcha", booking)

        emit("operator.resolved", booking, actor="olga", expect=S.OPERATOR_ESCALATED)

        assert state() == S.AUTHENTICATING
        assert RunEntry.objects.latest("seq").actor == "olga"

    def test_that_is_booked_cannot_be_queued_again(self, booking, clock):
        clock.advance(minutes=1)
        emit("booking.cancelled", booking)

        for event in sorted({event for row in TABLE.values() for event in row}):
            with no_write(), pytest.raises(TransitionNotAllowed, match="It has ended"):
                emit(event, booking)

        assert state() == S.CANCELLED in ENDS

    def test_that_has_ended_takes_what_was_open_with_it(self, booking, clock):
        emit("booking.cancelled", booking)

        assert set(ScheduledTask.objects.values_list("state", "reason")) == {(State.CANCELLED, "CANCELLED")}
        clock.advance(hours=1)
        assert asked == []
        with pytest.raises(Exception, match="run of task"):
            redrive(ScheduledTask.objects.all()[:1], reason="again")

    def test_may_be_begun_again_when_it_has_ended(self, booking):
        emit("booking.cancelled", booking)

        emit("booking.created", booking)

        assert sorted(TimelineRun.objects.values_list("state", flat=True)) == ["CANCELLED", "CREATED"]
        emit("booking.submitted", booking)


class TestTwoMachines:
    def test_of_an_entity_move_both_or_neither(self, booking):
        class Invoice(Machine):
            entity = "testapp.Order"
            initial = "open"
            table = {"open": {"invoice.sent": "sent"}, "sent": {"booking.cancelled": "void"}, "void": {}}

        with only_timelines(Portal, Invoice):
            start(Invoice, booking)
            with no_write(), pytest.raises(TransitionNotAllowed, match="invoice"):
                emit("booking.cancelled", booking)

            emit("invoice.sent", booking)
            emit("booking.cancelled", booking)

        assert sorted(TimelineRun.objects.values_list("timeline", "state")) == [
            ("invoice", "void"),
            ("portal", "CANCELLED"),
        ]
