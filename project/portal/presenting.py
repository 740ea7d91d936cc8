"""What the pages show of a booking, in words that an applicant reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Final

from django.db import DEFAULT_DB_ALIAS
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from project.portal.models import Booking
from project.portal.states import ENDS, FOR_OPERATORS, S
from timeline.features.holds.reading import HeldTask, waits_of
from timeline.models import ScheduledTask, TimelineRun

Text = str | Promise

WORDS: Final[Mapping[S, Text]] = {
    S.CREATED: _("We have your application"),
    S.VALIDATING: _("We check whether it is complete"),
    S.QUEUED: _("We ask whether the portal is open"),
    S.AWAITING_RELEASE: _("The portal is closed for the night"),
    S.AUTHENTICATING: _("We sign in for you"),
    S.AUTH_OTP_REQUIRED: _("The portal has sent you a code"),
    S.AUTH_OTP_SUBMITTING: _("We hand on your code"),
    S.AUTH_CAPTCHA_REQUIRED: _("The portal asks whether somebody is there; we are on it"),
    S.CREDENTIALS_REQUIRED: _("The portal does not take your password"),
    S.SEARCHING: _("We look for an appointment"),
    S.NO_SLOT: _("Nothing is free; we look again soon"),
    S.SLOT_FOUND: _("We have found appointments"),
    S.CHOICE_REQUIRED: _("Only later ones are free: please choose"),
    S.HOLDING_SLOT: _("We reserve the appointment"),
    S.SLOT_HELD: _("The appointment is reserved"),
    S.FILLING_FORM: _("We fill in the form"),
    S.DOCUMENTS_REQUIRED: _("The portal wants your documents"),
    S.PAYMENT_REQUIRED: _("The portal wants its fee"),
    S.CONFIRMING: _("We book it"),
    S.CONFIRM_OTP_REQUIRED: _("The portal has sent you a code, once more"),
    S.CONFIRM_OTP_SUBMITTING: _("We hand on your second code"),
    S.VERIFYING: _("We check whether it is booked"),
    S.RETRY_SCHEDULED: _("The portal does not answer; we try again soon"),
    S.OPERATOR_ESCALATED: _("One of our people is looking at it"),
    S.BOOKED: _("It is booked"),
    S.FAILED: _("It did not work out"),
    S.EXPIRED: _("The time was over"),
    S.CANCELLED: _("You have given it up"),
}

# In which state what is asked of the applicant: the name of the form, as in the templates and in the addresses.
ASKS: Final[Mapping[str, str]] = {
    S.AUTH_OTP_REQUIRED: "code",
    S.CONFIRM_OTP_REQUIRED: "code",
    S.CREDENTIALS_REQUIRED: "password",
    S.CHOICE_REQUIRED: "choice",
    S.DOCUMENTS_REQUIRED: "documents",
    S.PAYMENT_REQUIRED: "payment",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """
    A state on the way.

    Args:
        words: What it is.
        at: When it was entered.
        kind: ``booked``, ``over``, ``asks``, ``rests`` or ``works``, for its looks.
    """

    words: Text
    at: datetime
    kind: str


@dataclass(frozen=True, slots=True)
class Page:
    """
    All that an applicant sees.

    Args:
        words: Where it is.
        since: Since when.
        until: When something happens by itself; None: nothing is known to.
        held: Until when it waits though something would happen, in words; empty: it does not.
        asks: What is asked of the applicant; empty: nothing.
        is_over: Whether it has ended.
        way: The states so far, the latest first.
    """

    words: Text
    since: datetime
    until: datetime | None
    asks: str
    is_over: bool
    way: list[Stop]
    held: Text = ""


def present(booking: Booking) -> Page | None:
    """Say how a booking stands, in four queries; None: it has no run, as one that was made by hand."""
    runs = TimelineRun.objects.for_entity(booking).filter(timeline="booking").order_by("-started_at", "-pk")
    if (run := runs.first()) is None or run.state_at is None:
        return None
    way = run.entries.order_by("-seq").values_list("to_state", "at")
    ahead = list(ScheduledTask.objects.open().filter(run=run))
    timers = [task.scheduled_at for task in ahead if task.task_name.startswith("timer:")]
    waits = waits_of(ahead, using=run._state.db or DEFAULT_DB_ALIAS)
    return Page(
        words=words(run.state),
        since=run.state_at,
        until=min(timers, default=None),
        held=_held(waits.values()),
        asks=ASKS.get(run.state, ""),
        is_over=run.state in ENDS,
        way=[Stop(words(state), at, _kind(state)) for state, at in _entered(way)],
    )


def _held(waits: Iterable[HeldTask]) -> Text:
    """Until when all waits that is on hold. Who decided that, and why, is for staff."""
    ends = [held.until for held in waits]
    if not ends:
        return ""
    known = [at for at in ends if at is not None]
    if len(known) < len(ends):
        return _("It waits until one of our people lets it go on.")
    return format_lazy(_("It waits until {at} UTC."), at=date_format(max(known), "DATETIME_FORMAT"))


def _entered(way: Iterable[tuple[str, datetime]]) -> Iterator[tuple[str, datetime]]:
    """Of a state that follows itself, as where a timer reminds operators: the first time, at which it was entered."""
    for _state, stay in groupby(way, key=itemgetter(0)):
        yield list(stay)[-1]


def words(state: str) -> Text:
    """A state in plain words."""
    return WORDS[S(state)] if state in WORDS else state


def _kind(state: str) -> str:
    if state in ENDS:
        return "booked" if state == S.BOOKED else "over"
    return "asks" if state in ASKS or state in FOR_OPERATORS else "works"


def slot_in_words(slot: str) -> str:
    """An appointment in words; as it is, where it is no time."""
    at = parse_datetime(slot)
    return f"{date_format(at.astimezone(UTC), 'DATETIME_FORMAT')} UTC" if at and at.tzinfo else slot


@dataclass(frozen=True, slots=True)
class Case:
    """
    A booking that waits for an operator.

    Args:
        booking: Which.
        state: Where it is.
        since: Since when.
        until: When it is urgent, or given up, by itself; None: never.
    """

    booking: Booking
    state: str
    since: datetime
    until: datetime | None

    @property
    def words(self) -> Text:
        """What it waits for."""
        return words(self.state)

    @property
    def may_be_given_up(self) -> bool:
        """Whether its state takes that."""
        return self.state == S.OPERATOR_ESCALATED


def cases(*, most: int = 100) -> list[Case]:
    """List what waits for an operator, the oldest first, in three queries."""
    runs = TimelineRun.objects.open().filter(timeline="booking", state__in=FOR_OPERATORS).order_by("state_at", "pk")
    found = list(runs[:most])
    known = Booking.objects.in_bulk([int(run.entity_id) for run in found])
    timers = ScheduledTask.objects.open().filter(run__in=found, task_key__startswith="booking.timer:sla.")
    until = dict(timers.values_list("run_id", "scheduled_at"))
    return [
        Case(known[int(run.entity_id)], run.state, run.state_at, until.get(run.pk))
        for run in found
        if int(run.entity_id) in known and run.state_at is not None
    ]
