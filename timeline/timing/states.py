"""States of a machine as anchors: how they are written, how they are shown, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Final, Protocol

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.timing.offsets import Offset, Problem

OF_STATE: Final = "state:"  # The beginning of an anchor that counts from when a state is entered.


class Delays(Protocol):
    """Something that tells how long to wait before each try: a ``Retry``."""

    @property
    def max_attempts(self) -> int | None:
        """The largest number of tries; None: any number."""

    def wait(self, failures: int, share: float) -> timedelta:
        """How long to wait after so many failures; ``share``: part of the longest jitter, 0 to 1."""


@dataclass(frozen=True)
class Backoff:
    """How a timer of a state comes later with each try. ``spent``: the event that comes when tries are used up."""

    delays: Delays
    spent: str = ""
    is_spent: bool = False

    def is_wanted(self, tries: int) -> bool:
        """Whether there is such a timer at this try, counted from 1: of the two events only one has a timer at a time."""
        most = self.delays.max_attempts
        return (most is not None and tries >= most) is self.is_spent

    def wait(self, tries: int, share: float) -> timedelta:
        """How long to wait at this try. If the tries are used up, the event comes at once."""
        return timedelta(0) if self.is_spent else self.delays.wait(tries, share)

    def describe(self, said: str) -> str:
        if self.is_spent:
            return str(_("%(when)s, as try number %(most)s in a row")) % {
                "when": said,
                "most": self.delays.max_attempts,
            }
        return str(_("%(when)s, later with each try")) % {"when": said}


def anchor_of(states: Iterable[str]) -> str:
    """Write states as an anchor. They have no blanks."""
    return OF_STATE + " ".join(states)


def states_in(anchor: str) -> tuple[str, ...]:
    """The states of an anchor; none if it is another kind of anchor."""
    return tuple(anchor.removeprefix(OF_STATE).split()) if anchor.startswith(OF_STATE) else ()


def told_states(states: Iterable[str]) -> str:
    """Name states in a sentence."""
    return str(pgettext_lazy("timeline", " or ")).join(states)


def names_states(anchor: object, more: Iterable[object], backoff: object) -> bool:
    """Whether ``after`` is given states: a member of an enumeration, several texts, or one with a backoff."""
    return isinstance(anchor, str) and (
        isinstance(anchor, Enum) or backoff is not None or any(isinstance(one, str) for one in more)
    )


def texts_among(named: Iterable[object]) -> tuple[str, ...]:
    """States as plain text; other values are left out."""
    return tuple(str.__str__(one) for one in named if isinstance(one, str))


def state_problems(named: Iterable[object]) -> Iterator[Problem]:
    """List what is wrong with the states given."""
    named = list(named)
    if not named:
        yield "on() names no state.", "Name one or several: on(S.AUTHENTICATING)."
    for one in named:
        if not isinstance(one, str) or not one or re.search(r"\s", one):
            yield f"names the state {one!a:.60}.", "Name states of the table, as text or members of a StrEnum."
    if len(set(texts_among(named))) < len(texts_among(named)):
        yield "names a state twice.", "Name it once."


def backoff_problems(backoff: Any, spent: object, offset: Offset) -> Iterator[Problem]:
    """List what is wrong with a backoff and its event ``spent``."""
    if backoff is None:
        if spent:
            yield f"has spent={spent!a:.60}, and no backoff that could be.", "Give backoff=Retry(…), too."
        return
    if not hasattr(backoff, "wait"):
        yield f"has backoff={backoff!a:.60}.", "Use Retry(…)."
        return
    yield from backoff.problems()
    if offset:
        yield "has both a distance and a backoff.", "Leave one of them out: Retry(base=…) is the first distance."
    if not isinstance(spent, str) or (spent and re.search(r"\s", spent)):
        yield f"has spent={spent!a:.60}.", "Name the event that comes when the tries are used up."
    if bool(spent) is (backoff.max_attempts is None):
        yield (
            "has a backoff with max_attempts, or with spent, but not both.",
            'Say how many tries there are, and what comes then: backoff=Retry(max_attempts=6), spent="retries.used_up".',
        )
