"""Who wants an appointment in the demo, and what they and the operator do while a booking waits for them: by chance."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count as numbers
from typing import Final
from urllib.request import Request, urlopen

from django.conf import settings

from project.portal import client, services
from project.portal.errors import PortalError, Unheard
from project.portal.models import Booking
from project.portal.states import S
from timeline.exceptions import TransitionNotAllowed
from timeline.models import TimelineRun

OPERATOR: Final = "operator@parley.example"

_NAMES: Final = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo", "Ines", "Jon", "Kira", "Leo", "Mia", "Noah")
_CODE: Final = re.compile(r"id='code'>(\d+)<")

# In which state who does what, how often of a hundred, and within how many minutes. What is left of the hundred does nothing.
_HABITS: Final[dict[S, tuple[tuple[str, int, float, float], ...]]] = {
    S.AUTH_OTP_REQUIRED: (("code", 82, 0.5, 7), ("wrong code", 9, 0.5, 3), ("cancel", 2, 1, 9)),
    S.CONFIRM_OTP_REQUIRED: (("code", 86, 0.5, 7), ("wrong code", 9, 0.5, 3)),
    S.AUTH_CAPTCHA_REQUIRED: (("resolve", 80, 3, 25),),
    S.CREDENTIALS_REQUIRED: (("password", 60, 10, 1200),),
    S.CHOICE_REQUIRED: (("choose", 85, 1, 25),),
    S.DOCUMENTS_REQUIRED: (("documents", 85, 2, 18), ("cancel", 3, 1, 15)),
    S.PAYMENT_REQUIRED: (("pay", 88, 1, 15), ("cancel", 3, 1, 15)),
    S.NO_SLOT: (("cancel", 2, 1, 4),),
    S.AWAITING_RELEASE: (("cancel", 2, 10, 300),),
    S.OPERATOR_ESCALATED: (("resolve", 80, 3, 30), ("give up", 15, 10, 40)),
}


@dataclass(frozen=True)
class Applicant:
    """
    Somebody who wants an appointment.

    Args:
        name, email, password: What they type into the form; a password that begins with ``old`` is not theirs any more.
        latest_hour: See ``Booking``; 8 makes no sense.
        patience: After how long it is of no use any more.
    """

    name: str
    email: str
    password: str
    latest_hour: int
    patience: timedelta

    def apply(self, *, now: datetime, pace: int = 1) -> Booking:
        """Apply."""
        until = now + self.patience * pace
        return services.apply(
            self.name, self.email, self.password, now=now, latest_hour=self.latest_hour, search_until=until
        )


def applicants(seed: int = 1) -> Iterator[Applicant]:
    """Make people without end."""
    for number in numbers():
        chances = random.Random(f"{seed} applicant {number}")  # noqa: S311 (chances of a demonstration)
        name = f"{_NAMES[number % len(_NAMES)]} {number // len(_NAMES) + 1}"
        yield Applicant(
            name=name,
            email=f"{name.lower().replace(' ', '')}@example.com",
            password="old secret" if chances.random() < 0.07 else "secret",
            latest_hour=chances.choices((24, 12, 8), (70, 28, 2))[0],
            patience=timedelta(hours=chances.choices((0.4, 30), (10, 90))[0]),
        )


class Crowd:
    """
    All who are waited for. What each does of a rest is settled when it begins: so it can be asked any number of times.

    Args:
        seed: Of their chances.
        pace: How much longer than in earnest they take.
    """

    def __init__(self, *, seed: int = 1, pace: int = 1) -> None:
        self.seed, self.pace = seed, pace
        self._done = set[tuple[str, int]]()

    def act(self, now: datetime) -> datetime | None:
        """
        Let everybody do what they do by now.

        Returns:
            When the next one does something; None: nobody of those who wait.
        """
        rests = TimelineRun.objects.open().filter(timeline="booking", state__in=list(_HABITS))
        soonest = None
        for entity_id, state, since, moves in rests.values_list("entity_id", "state", "state_at", "moves"):
            deed, after = self._wish(entity_id, S(state), moves)
            if not deed or (entity_id, moves) in self._done or since is None:
                continue
            at = since + after
            if at <= now and deed == "resolve":
                at = max(at, opens_at())  # Operators send nobody to a portal that is closed.
            if at <= now:
                self._done.add((entity_id, moves))
                self._do(deed, entity_id, state)
            elif soonest is None or at < soonest:
                soonest = at
        return soonest

    def _wish(self, entity_id: str, state: S, moves: int) -> tuple[str, timedelta]:
        chances = random.Random(f"{self.seed} {entity_id} {moves}")  # noqa: S311 (chances of a demonstration)
        drawn = chances.random() * 100
        for deed, share, least, most in _HABITS[state]:
            if drawn < share:
                return deed, timedelta(minutes=chances.uniform(least, most)) * self.pace
            drawn -= share
        return "", timedelta(0)

    def _do(self, deed: str, entity_id: str, state: str) -> None:
        """Do it, unless the booking has moved on meanwhile, or its timer was quicker."""
        with suppress(TransitionNotAllowed):
            _DEEDS[deed](Booking.objects.get(pk=entity_id), state)


def _give_code(booking: Booking, _state: str) -> None:
    services.give_code(booking, read_code(booking.reference))


def _resolve(booking: Booking, state: str) -> None:
    solve_captcha(booking.reference)  # Whatever it was, an operator looks at this, too.
    services.resolve(booking, actor=OPERATOR, state=state)


_DEEDS: Final[dict[str, Callable[[Booking, str], None]]] = {
    "code": _give_code,
    "wrong code": lambda booking, _state: services.give_code(booking, "000000"),
    "password": lambda booking, _state: services.give_password(booking, "secret"),
    "choose": lambda booking, _state: services.choose(booking, booking.offers[0]),
    "documents": lambda booking, _state: services.give_documents(booking),
    "pay": lambda booking, _state: services.pay(booking),
    "cancel": lambda booking, _state: services.cancel(booking),
    "resolve": _resolve,
    "give up": lambda booking, state: services.give_up(booking, actor=OPERATOR, state=state),
}


def opens_at() -> datetime:
    """When the portal is to open; long ago, if it is open, or does not say."""
    with suppress(PortalError, Unheard):
        answer = client.status()
        if not answer["open"]:
            return datetime.fromisoformat(answer["opens_at"])
    return datetime.min.replace(tzinfo=UTC)


def read_code(reference: str) -> str:
    """Read the code on the page that the portal has for it, as a person does; empty: there is none."""
    with urlopen(f"{settings.PORTAL_URL}/inbox/{reference}", timeout=20) as page:  # noqa: S310 (the demo's own)
        found = _CODE.search(page.read().decode())
    return found[1] if found else ""


def solve_captcha(reference: str) -> None:
    """Press the button on the portal's page that asks whether somebody is there."""
    request = Request(f"{settings.PORTAL_URL}/captcha/{reference}", b"")  # noqa: S310
    with urlopen(request, timeout=20):  # noqa: S310
        pass
