"""A booking on a hostile portal, as a machine of 28 states; and what tests ask of machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise

from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline import BACK, IGNORE, OPEN, STAY, WORKING, Machine, Retry, after, at, on
from timeline.models import RunEntry, TimelineRun


class S(StrEnum):
    CREATED = "CREATED"
    VALIDATING = "VALIDATING"
    QUEUED = "QUEUED"
    AWAITING_RELEASE = "AWAITING_RELEASE"
    AUTHENTICATING = "AUTHENTICATING"
    AUTH_OTP_REQUIRED = "AUTH_OTP_REQUIRED"
    AUTH_OTP_SUBMITTING = "AUTH_OTP_SUBMITTING"
    AUTH_CAPTCHA_REQUIRED = "AUTH_CAPTCHA_REQUIRED"
    CREDENTIALS_REQUIRED = "CREDENTIALS_REQUIRED"
    SEARCHING = "SEARCHING"
    NO_SLOT = "NO_SLOT"
    SLOT_FOUND = "SLOT_FOUND"
    CHOICE_REQUIRED = "CHOICE_REQUIRED"
    HOLDING_SLOT = "HOLDING_SLOT"
    SLOT_HELD = "SLOT_HELD"
    FILLING_FORM = "FILLING_FORM"
    DOCUMENTS_REQUIRED = "DOCUMENTS_REQUIRED"
    PAYMENT_REQUIRED = "PAYMENT_REQUIRED"
    CONFIRMING = "CONFIRMING"
    CONFIRM_OTP_REQUIRED = "CONFIRM_OTP_REQUIRED"
    CONFIRM_OTP_SUBMITTING = "CONFIRM_OTP_SUBMITTING"
    VERIFYING = "VERIFYING"
    RETRY_SCHEDULED = "RETRY_SCHEDULED"
    OPERATOR_ESCALATED = "OPERATOR_ESCALATED"
    BOOKED = "BOOKED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


TABLE = {
    S.CREATED: {"booking.submitted": S.VALIDATING},
    S.VALIDATING: {"input.ok": S.QUEUED, "input.bad": S.FAILED},
    S.QUEUED: {"portal.open": S.AUTHENTICATING, "portal.closed": S.AWAITING_RELEASE},
    S.AWAITING_RELEASE: {"release.reached": S.AUTHENTICATING},
    S.AUTHENTICATING: {
        "auth.ok": S.SEARCHING,
        "auth.otp_required": S.AUTH_OTP_REQUIRED,
        "auth.captcha": S.AUTH_CAPTCHA_REQUIRED,
        "auth.rejected": S.CREDENTIALS_REQUIRED,
    },
    S.AUTH_OTP_REQUIRED: {"otp.given": S.AUTH_OTP_SUBMITTING, "otp.timed_out": S.OPERATOR_ESCALATED},
    S.AUTH_OTP_SUBMITTING: {"auth.ok": S.SEARCHING, "otp.wrong": S.AUTH_OTP_REQUIRED},
    S.AUTH_CAPTCHA_REQUIRED: {"operator.resolved": BACK, "sla.captcha": S.OPERATOR_ESCALATED},
    S.CREDENTIALS_REQUIRED: {"credentials.updated": S.AUTHENTICATING, "sla.credentials": S.EXPIRED},
    S.SEARCHING: {"slot.found": S.SLOT_FOUND, "slot.none": S.NO_SLOT},
    S.NO_SLOT: {"look.again": S.SEARCHING, "search.over": S.EXPIRED},
    S.SLOT_FOUND: {"slot.suits": S.HOLDING_SLOT, "slot.ask": S.CHOICE_REQUIRED},
    S.CHOICE_REQUIRED: {"slot.chosen": S.HOLDING_SLOT, "choice.timed_out": S.SEARCHING},
    S.HOLDING_SLOT: {"slot.held": S.SLOT_HELD, "slot.gone": S.SEARCHING},
    S.SLOT_HELD: {"form.open": S.FILLING_FORM},
    S.FILLING_FORM: {"form.done": S.CONFIRMING, "form.documents": S.DOCUMENTS_REQUIRED, "form.fee": S.PAYMENT_REQUIRED},
    S.DOCUMENTS_REQUIRED: {"documents.given": S.FILLING_FORM, "hold.over": S.SEARCHING},
    S.PAYMENT_REQUIRED: {"payment.completed": S.CONFIRMING, "hold.over": S.SEARCHING},
    S.CONFIRMING: {"confirm.ok": S.VERIFYING, "confirm.otp_required": S.CONFIRM_OTP_REQUIRED},
    S.CONFIRM_OTP_REQUIRED: {"otp.given": S.CONFIRM_OTP_SUBMITTING, "otp.timed_out": S.OPERATOR_ESCALATED},
    S.CONFIRM_OTP_SUBMITTING: {"confirm.ok": S.VERIFYING, "otp.wrong": S.CONFIRM_OTP_REQUIRED},
    S.VERIFYING: {"booking.verified": S.BOOKED, "booking.absent": S.SEARCHING},
    S.RETRY_SCHEDULED: {"retry.due": BACK, "retries.used_up": S.OPERATOR_ESCALATED},
    S.OPERATOR_ESCALATED: {"operator.resolved": BACK, "operator.gave_up": S.FAILED, "sla.operator": STAY},
    S.BOOKED: {},
    S.FAILED: {},
    S.EXPIRED: {},
    S.CANCELLED: {},
    WORKING: {"portal.error": S.RETRY_SCHEDULED, "portal.unknown": S.OPERATOR_ESCALATED},
    OPEN: {"booking.cancelled": S.CANCELLED, "portal.heartbeat": IGNORE},
}

RESTS = {
    S.AWAITING_RELEASE,
    S.AUTH_OTP_REQUIRED,
    S.AUTH_CAPTCHA_REQUIRED,
    S.CREDENTIALS_REQUIRED,
    S.NO_SLOT,
    S.CHOICE_REQUIRED,
    S.DOCUMENTS_REQUIRED,
    S.PAYMENT_REQUIRED,
    S.CONFIRM_OTP_REQUIRED,
    S.RETRY_SCHEDULED,
    S.OPERATOR_ESCALATED,
}
ENDS = {S.BOOKED, S.FAILED, S.EXPIRED, S.CANCELLED}
EVENTS = sorted({event for row in TABLE.values() for event in row})


class PortalTimeout(Exception):
    """The portal did not answer in time."""


class BadLogin(Exception):
    """It does not know the name, or the password."""


class Captcha(Exception):
    """It wants to know whether somebody is there."""


TIMERS = {
    "otp.timed_out": after(S.AUTH_OTP_REQUIRED, S.CONFIRM_OTP_REQUIRED, minutes=10),
    "release.reached": at("ships_at"),
    "sla.captcha": on(S.AUTH_CAPTCHA_REQUIRED, hours=1),
    "sla.credentials": after(S.CREDENTIALS_REQUIRED, days=2),
    "look.again": after(S.NO_SLOT, minutes=5),
    "choice.timed_out": after(S.CHOICE_REQUIRED, minutes=30),
    "hold.over": after(S.DOCUMENTS_REQUIRED, S.PAYMENT_REQUIRED, minutes=20),
    "sla.operator": after(S.OPERATOR_ESCALATED, hours=4),
    "retry.due": after(
        S.RETRY_SCHEDULED,
        backoff=Retry(base=timedelta(seconds=30), cap=timedelta(hours=1), max_attempts=6),
        spent="retries.used_up",
    ),
}
ERRORS = {
    PortalTimeout: "portal.error",
    BadLogin: "auth.rejected",
    Captcha: "auth.captcha",
    Exception: "portal.unknown",
}


class Booking(Machine):
    """An appointment on a portal that does not want to be booked."""

    entity = "testapp.Order"
    starts_on = "booking.created"
    initial = S.CREATED
    table = TABLE
    working = tuple(state for state in S if state not in RESTS | ENDS)
    timers = TIMERS
    errors = ERRORS


def expected(state, event):
    """What the table says, read by hand; None: it does not take it."""
    if state in ENDS:
        return None
    rows = [TABLE[state], *([TABLE[WORKING]] if state not in RESTS else []), TABLE[OPEN]]
    return next((row[event] for row in rows if event in row), None)


def placed(order, state, *, machine=Booking, back="", **columns):
    """A run in a state, as if it had come there: with the one entry that says so."""
    columns.setdefault("started_at", "2026-03-01T09:00Z")
    run = TimelineRun.objects.create(
        timeline=machine.definition.name,
        entity_label=order._meta.label_lower,
        entity_id=str(order.pk),
        state=str(state),
        state_at=columns["started_at"],
        back=back,
        **columns,
    )
    RunEntry.objects.create(run=run, seq=0, at=columns["started_at"], to_state=str(state), back=back)
    run.refresh_from_db()
    return run


def replayed(run):
    """Replay the entries of a run: the four columns that they lead to."""
    entries = list(RunEntry.objects.filter(run=run.pk).order_by("seq"))
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    assert all(after.from_state == before.to_state for before, after in pairwise(entries))
    last = entries[-1]
    return last.to_state, last.at, last.back, last.seq


def is_whole(run):
    """Whether the entries of a run lead to what it is."""
    run = TimelineRun.objects.get(pk=run.pk)
    return replayed(run) == (run.state, run.state_at, run.back, run.moves)


@contextmanager
def no_write() -> Iterator[CaptureQueriesContext]:
    """See that nothing is written within the block: by the log of queries."""
    with CaptureQueriesContext(connection) as queries:
        yield queries
    verbs = {query["sql"].lstrip("( \n").split(None, 1)[0].upper() for query in queries}
    assert verbs <= {"SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT"}, verbs
