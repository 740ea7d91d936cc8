"""A booking that rests: each wait is a state with a timer; workers die, people are late, and it goes on exactly there."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from uuid import uuid4

import pytest

from tests.machines import BadLogin, Booking, Captcha, PortalTimeout, S, is_whole, no_write
from tests.testapp.models import Order
from timeline import Then, TransitionNotAllowed, on, task
from timeline.dispatch.rescue import rescue
from timeline.engine.attempts import begin_attempts
from timeline.lifecycle import ReasonCode
from timeline.models import RunEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, explain, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

# What the portal answers, call by call: an event, or an exception; nothing: it is slow beyond all patience.
PORTAL: deque[str | Exception] = deque()


def ask() -> Then:
    answer = PORTAL.popleft() if PORTAL else PortalTimeout()
    if isinstance(answer, Exception):
        raise answer
    return Then(answer)


class Portal(Booking):
    """The booking with a task for what it does at the portal, each bound to its state."""

    name = "portal"

    @task(on(S.AUTHENTICATING), atomic=False)
    def authenticate(self, order: Order) -> Then:
        return ask()

    @task(on(S.AUTH_OTP_SUBMITTING), atomic=False)
    def submit_code(self, order: Order) -> Then:
        then = ask()
        if then.event == "otp.wrong" and self.visits(S.AUTH_OTP_SUBMITTING) >= 3:
            return Then("portal.unknown")
        return then

    @task(on(S.SEARCHING), atomic=False)
    def search(self, order: Order) -> Then:
        return ask()


@pytest.fixture(autouse=True)
def _portal(clock):
    PORTAL.clear()
    with only_timelines(Portal):
        yield


@pytest.fixture
def booking():
    order = Order.objects.create()
    start(Portal, order)
    for event in ("booking.submitted", "input.ok"):
        emit(event, order)
    return order


def state():
    run_ = TimelineRun.objects.get()
    assert is_whole(run_)
    open_rows = ScheduledTask.objects.filter(run=run_, finished_at=None)
    assert {row.occurrence for row in open_rows} <= {str(run_.moves)}  # Nothing of a state that was left.
    return run_.state


def go(clock, **ahead):
    clock.advance(**(ahead or {"seconds": 0}))
    return state()


class TestACode:
    @pytest.fixture
    def asked(self, booking, clock):
        PORTAL.append("auth.otp_required")
        emit("portal.open", booking)
        assert go(clock) == S.AUTH_OTP_REQUIRED
        return booking

    def test_that_comes_at_9_59_is_taken(self, asked, clock):
        assert go(clock, minutes=9, seconds=59) == S.AUTH_OTP_REQUIRED
        PORTAL.extend(["auth.ok", "slot.none"])
        emit("otp.given", asked, payload={"code_ref": "vault/7"})

        assert go(clock) == S.NO_SLOT

    def test_that_comes_at_10_01_is_refused_with_zero_writes(self, asked, clock):
        assert go(clock, minutes=10, seconds=1) == S.OPERATOR_ESCALATED

        with no_write(), pytest.raises(TransitionNotAllowed, match=r"does not take 'otp\.given'"):
            emit("otp.given", asked)

    def test_that_is_wrong_three_times_goes_to_an_operator(self, asked, clock):
        for wanted in (S.AUTH_OTP_REQUIRED, S.AUTH_OTP_REQUIRED, S.OPERATOR_ESCALATED):
            PORTAL.append("otp.wrong")
            emit("otp.given", asked)
            assert go(clock) == wanted

    def test_is_submitted_again_exactly_there_when_the_worker_dies(self, asked, clock):
        emit("otp.given", asked)
        row = ScheduledTask.objects.get(task_key="portal.submit_code")
        begin_attempts([row.pk], token=None, worker="gone", now=clock.now, using="default")
        ScheduledTask.objects.filter(pk=row.pk).update(lease_expires_at="2026-01-01T00:00Z")
        moves = RunEntry.objects.count()

        rescue(now=clock.now, using="default")
        PORTAL.extend(["auth.ok", "slot.found"])

        assert go(clock, hours=1) == S.SLOT_FOUND
        row.refresh_from_db()
        assert (row.attempt, row.log.filter(reason_code=ReasonCode.WORKER_LOST).count()) == (2, 1)
        assert RunEntry.objects.count() == moves + 2


class TestTheRestOfIt:
    def test_a_captcha_resolved_by_an_operator_leads_back_to_where_it_was(self, booking, clock):
        PORTAL.append(Captcha())
        emit("portal.open", booking)
        assert go(clock) == S.AUTH_CAPTCHA_REQUIRED

        PORTAL.append("auth.ok")
        PORTAL.append("slot.none")
        emit("operator.resolved", booking, actor="ada")
        assert go(clock) == S.NO_SLOT
        assert [entry.to_state for entry in RunEntry.objects.order_by("seq")][-3:] == [
            S.AUTHENTICATING,
            S.SEARCHING,
            S.NO_SLOT,
        ]

    @pytest.mark.parametrize(("waits", "wanted"), [(timedelta(days=1, hours=23), S.NO_SLOT), (timedelta(days=2), None)])
    def test_credentials_are_waited_for_two_days(self, booking, clock, waits, wanted):
        PORTAL.append(BadLogin())
        emit("portal.open", booking)
        assert go(clock) == S.CREDENTIALS_REQUIRED

        clock.advance(waits)
        if wanted is None:
            assert (state(), TimelineRun.objects.get().is_open) == (S.EXPIRED, False)
            return
        PORTAL.extend(["auth.ok", "slot.none"])
        emit("credentials.updated", booking)
        assert go(clock) == wanted

    def test_a_portal_that_is_slow_is_tried_again_later_each_time_and_then_somebody_looks(self, booking, clock):
        emit("portal.open", booking)
        assert go(clock) == S.RETRY_SCHEDULED

        assert go(clock, hours=1) == S.OPERATOR_ESCALATED
        told = [entry.event for entry in RunEntry.objects.order_by("seq")]
        assert (told.count("portal.error"), told.count("retry.due")) == (6, 5)
        assert told[-1] == "retries.used_up"
        assert not ScheduledTask.objects.filter(failures__gt=0).exists()

    def test_maintenance_is_waited_out_until_the_portal_opens(self, booking, clock):
        emit("portal.closed", booking)
        assert go(clock, days=1) == S.AWAITING_RELEASE

        booking.ships_at = clock.now + timedelta(hours=8)
        booking.save()
        assert go(clock, hours=7) == S.AWAITING_RELEASE
        PORTAL.extend(["auth.ok", "slot.none"])
        assert go(clock, hours=1) == S.NO_SLOT

    def test_what_is_booked_is_not_queued_again_and_nothing_is_written(self, booking, clock):
        emit("booking.cancelled", booking)

        with no_write(), pytest.raises(TransitionNotAllowed, match="It has ended"):
            emit("input.ok", booking)
        assert not ScheduledTask.objects.filter(finished_at=None).exists()

    def test_explains_why_it_is_where_it_is(self, booking, clock):
        PORTAL.append("auth.otp_required")
        emit("portal.open", booking, key=str(uuid4()))
        go(clock)

        told = explain(ScheduledTask.objects.get(finished_at=None))

        assert "timer of otp.timed_out: 10 minutes after AUTH_OTP_REQUIRED or CONFIRM_OTP_REQUIRED is entered" in told
        assert "Its run is AUTH_OTP_REQUIRED since" in told
