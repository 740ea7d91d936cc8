"""Floors: where a process begins to look for the first rows of an index. PostgreSQL only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from timeline.timing import EARLIEST

SLOW: Final = 0.005  # Seconds of a look: about 7,000 dead entries.
MANY: Final = 20_000  # Dead rows of the table, three for each task: with fewer, a look was slow for another reason.
SHARE: Final = 40  # After a slow whole look, others do for so many times its length.
LONGEST: Final = 15.0  # Seconds, but not for longer.
SLACK: Final = timedelta(seconds=1)  # What is committed so late is still found where there was nothing.
P = TypeVar("P")
_floors: dict[tuple[str, str], Floor[Any]] = {}  # Alias and question → where its looks begin.
_dead: dict[str, int] = {}  # Alias → dead rows of its table of tasks.


class IndexPlace(NamedTuple):
    """A place in an index of due tasks: from this due time and id on."""

    since: datetime = EARLIEST
    id: UUID = UUID(int=0)


BEGINNING: Final = IndexPlace()


@dataclass
class Floor(Generic[P]):
    """Where looks of one kind begin: at ``place``, or at what ``beginning`` makes."""

    beginning: Callable[[], P]
    place: P | None = None
    _next_whole: float = field(default=0.0)

    def begin(self) -> tuple[P, bool]:
        """Where the next look begins, and whether it is a whole one."""
        if self.place is None or monotonic() >= self._next_whole:
            return self.beginning(), True
        return self.place, False

    def found(self, place: Callable[[], P], begun: float, *, whole: bool, using: str) -> None:
        """Take in what a look has found. ``place`` tells before where there was nothing; ``begun`` is by ``monotonic()``."""
        if not whole:
            if self.place is not None:  # Otherwise somebody has taken it away meanwhile.
                self.place = place()
            return
        took = monotonic() - begun
        if took < SLOW or _dead.get(using, 0) < MANY:
            self.place = None
            return
        self.place, self._next_whole = place(), monotonic() + min(SHARE * took, LONGEST)


def floor_of(question: str, beginning: Callable[[], P], *, using: str) -> Floor[P]:
    """The floor of a question, for this process."""
    return _floors.setdefault((using, question), Floor(beginning))


def floors_of(question: str, *, using: str) -> list[Floor[Any]]:
    """The floors of all questions that begin with a word."""
    return [
        floor
        for (alias, asked), floor in list(_floors.items())
        if alias == using and asked.partition(" ")[0] == question
    ]


def look_anew(*, using: str) -> None:
    """Let the next look of each kind be a whole one."""
    for (alias, _question), floor in list(_floors.items()):
        if alias == using:
            floor.place = None


def note_dead(dead: int | None, *, using: str) -> None:
    """Note how many dead rows the table of tasks has, as far as PostgreSQL has counted."""
    _dead[using] = dead or 0
