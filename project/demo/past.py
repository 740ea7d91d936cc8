"""The past that the demo begins with: who signed up in the last weeks, and what became of them, told fast before it starts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Final

from django.db import DEFAULT_DB_ALIAS

from project.accounts import services
from project.accounts.models import User
from project.accounts.views import EXTENSION_DAYS
from project.demo.mailing import let_be_down
from project.demo.operators import EMAIL
from project.demo.people import Action, Person
from timeline.features.maintenance.figures import roll_up
from timeline.shortcuts import hold
from timeline.testing import StoryClock

LONG: Final = timedelta(days=75)
DAY: Final = timedelta(days=1)
# How long ago some signed up. The reminder of the first went out, and the trial ends soon; that of one could not be sent, and
# that of another at last, for it was due two minutes before the mail server was back.
AGO: Final = {0: 27 * DAY, 2: 25.4 * DAY + timedelta(minutes=2), 5: 25.8 * DAY}
OUTAGES: Final = ((14.5, 13.0), (1.2, 0.4))  # The mail server was down from so many days ago to so many.
HELD: Final = 3  # Whose tasks are on hold.


def live_the_past(people: list[Person], *, until: datetime) -> list[Joined]:
    """
    Let people sign up and act in the weeks before a moment, run what was due, and count it for the charts.

    Args:
        people: The first one is in the middle of the trial at the end.
        until: When the demo begins.

    Returns:
        All of them, in the given order.
    """
    roll_up(using=DEFAULT_DB_ALIAS)  # The first call only remembers where to begin.
    joined = [Joined(person, at) for person, at in zip(people, _sign_ups(len(people), until), strict=True)]
    agenda = _Agenda()
    for one in joined:
        agenda.add(one.at, one.sign_up)
        for day, action in one.person.actions:
            agenda.add(one.at + timedelta(days=day), partial(one.do, action))
    for begin, end in OUTAGES:
        agenda.add(until - timedelta(days=begin), lambda _at: let_be_down(True))
        agenda.add(until - timedelta(days=end), lambda _at: let_be_down(False))
    with _quiet(), StoryClock(until - LONG, raises=False) as clock:
        for at, do in agenda.by(until):
            clock.run_until(at)
            do(at)
        clock.run_until(until)
        for one in joined[HELD : HELD + 1]:
            hold(one.user, reason="They dispute the bill.", actor=EMAIL)
    while roll_up(using=DEFAULT_DB_ALIAS):
        pass
    return joined


@contextmanager
def _quiet() -> Iterator[None]:
    """Say nothing of what fails in the block: its pages show it."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class Joined:
    """
    Somebody who signs up.

    Args:
        person: Who.
        at: When.
    """

    user: User

    def __init__(self, person: Person, at: datetime) -> None:
        self.person, self.at = person, at

    def sign_up(self, at: datetime) -> None:
        """Open an account."""
        self.user = services.sign_up(self.person.email, self.person.website, now=at)

    def do(self, action: Action, at: datetime) -> None:
        """What they do at the site, where it is to be done still."""
        user = User.objects.get(pk=self.user.pk)
        if action == "call":
            services.note_script_call(user, now=at)
        elif user.payment_configured_at is None and user.trial_closed_at is None:
            _DEEDS[action](user, now=at)

    def ahead(self, since: datetime) -> Iterator[tuple[datetime, Action]]:
        """What they are still to do, and when."""
        for day, action in self.person.actions:
            if (at := self.at + timedelta(days=day)) > since:
                yield at, action


class _Agenda:
    """What happens when."""

    def __init__(self) -> None:
        self._entries: list[tuple[datetime, int, Callable[[datetime], object]]] = []

    def add(self, at: datetime, do: Callable[[datetime], object]) -> None:
        """Something happens then; of what happens at the same time, what was added first."""
        self._entries.append((at, len(self._entries), do))

    def by(self, until: datetime) -> Iterator[tuple[datetime, Callable[[datetime], object]]]:
        """All that happens by then, in order."""
        yield from ((at, do) for at, _number, do in sorted(self._entries, key=itemgetter(0, 1)) if at <= until)


def _sign_ups(count: int, until: datetime) -> Iterator[datetime]:
    """When they sign up."""
    for number in range(count):
        yield until - AGO.get(number, LONG - LONG * number / count)


_DEEDS: Final[dict[Action, Callable[..., None]]] = {
    "pay": services.configure_payment,
    "close": services.close_trial,
    "extend": partial(services.extend_trial, days=EXTENSION_DAYS),
}
