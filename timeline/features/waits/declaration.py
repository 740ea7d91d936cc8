"""What ``self.wait_for(…)`` is given, checked, and who waits."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.payloads import check_text

MAX_EVENT: Final = 100
MAX_EVENTS: Final = 500  # Characters of all names together, a blank between each two.
MAX_KEY: Final = 200
MAX_NAME: Final = 90
LONGEST: Final = timedelta(days=3660)

THEIR_OWN: Final = object()  # Whose events: nothing else was said.

_MAX_RECORD: Final = 150
PREFIX: Final = "(wait) "  # Of what a wait is recorded under: no step can be called that.
ASLEEP: Final = "(sleep) "  # The same of a sleep, which waits for its time alone.


@dataclass(frozen=True, slots=True)
class EventWait:
    """What is waited for: the first event of these, for so long from when the task goes to rest."""

    events: tuple[str, ...]
    within: timedelta
    key: str = ""  # The event's; empty: whichever it has.
    name: str = ""  # Tells several waits of a handler for the same apart.
    of: Any = None  # Whose; None: the task's own entity's.

    @property
    def recorded_as(self) -> str:
        """Under what its answer is recorded, once in an attempt."""
        told = PREFIX + " ".join(self.events) + (f"#{self.key}" if self.key else "")
        told += f" of {' '.join(self.of)}" if self.of is not None else ""
        told += f" {self.name}" if self.name else ""
        if len(told) <= _MAX_RECORD:
            return told
        digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        return f"{told[: _MAX_RECORD - len(digest) - 1]}…{digest}"


def renamed(recorded_as: str, old: str, new: str) -> str:
    """What a wait for another entity is recorded under, when that one's model is called otherwise."""
    return recorded_as.replace(f" of {old} ", f" of {new} ", 1)[:_MAX_RECORD]


class Waiter(Protocol):
    """Waits for events in the handler of one attempt."""

    def wait(self, asked: EventWait) -> Any:
        """Give the event that came, or let the task rest; None: the time ran out. Of an ``async def``, a coroutine."""


def event_wait(
    events: tuple[object, ...], within: object, key: object, name: object, of: object = THEIR_OWN
) -> EventWait:
    """Check what is waited for: ``InvalidInput``, naming ``events``, ``within``, ``key``, ``name`` or ``of``."""
    names = [str(_checked(event)) for event in events]
    if not names or len(set(names)) < len(names) or len(" ".join(names)) > MAX_EVENTS:
        remedy = _("Give the names of one event or several, each once, %(longest)d characters together at most.")
        raise InvalidInput(
            "events", _("%(events)s are not allowed."), remedy, events=f"{names!a:.60}", longest=MAX_EVENTS
        )
    if not isinstance(within, timedelta) or not timedelta(0) < within <= LONGEST:
        remedy = _("Say how long to wait at most, a timedelta of up to %(days)d days: within=timedelta(days=3).")
        raise InvalidInput("within", _("is %(within)s."), remedy, within=f"{within!a:.60}", days=LONGEST.days)
    check_text("key", key, MAX_KEY)
    check_text("name", name, MAX_NAME)
    if of is None:
        remedy = _("Give an entity, or leave it out: then it is the task's own.")
        raise InvalidInput("of", _("is %(value)s."), remedy, value=of)
    return EventWait(tuple(names), within, str(key), str(name), None if of is THEIR_OWN else of)


def nothing_to_wait(cls: type) -> InvalidInput:
    """Say that nothing runs here that could wait: it is a unit test, or a call for many."""
    problem = _("is called where no task of its own runs, so that none can rest.")
    remedy = _("In a unit test give what it gets: %(timeline)s(awaited=…). A handler with bulk cannot wait.")
    return InvalidInput("wait_for", problem, remedy, timeline=cls.__name__)


def _checked(event: object) -> object:
    check_text("events", event, MAX_EVENT, least=1)
    if re.search(r"\s", str(event)):
        raise InvalidInput("events", _("%(name)r has blanks."), _("Give text like 'user.created'."), name=event)
    return event
