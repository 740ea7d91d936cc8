"""``Table``: where each event leads from each state of a machine. Pure rules: no database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final

from timeline.features.machines.choices import Choice, edges_of, targets_of
from timeline.payloads import as_text


class TableAnswer(Enum):
    """What a table may say of an event besides the state that it leads to."""

    BACK = "BACK"  # The last state whose own row has no BACK.
    STAY = "STAY"  # The same state, entered anew.
    IGNORE = "IGNORE"  # Nothing moves; the event is recorded.

    def __repr__(self) -> str:
        return self.name


class Several(Enum):
    """Rows of a table that stand for several states."""

    WORKING = "WORKING"  # Those that the machine names as working.
    OPEN = "OPEN"  # All but ends.

    def __repr__(self) -> str:
        return self.name


BACK: Final = TableAnswer.BACK
STAY: Final = TableAnswer.STAY
IGNORE: Final = TableAnswer.IGNORE
WORKING: Final = Several.WORKING
OPEN: Final = Several.OPEN

UNSURE: Final = "Put a way without when= last: a state, or IGNORE."

"""Name of the event that says who erased, when and why. ``erase`` writes it, and nobody emits it: it is never blanked."""

Answer = str | TableAnswer
Target = Answer | Choice
Row = Mapping[str, Target]


@dataclass(frozen=True, kw_only=True)
class Table:
    """
    A machine's table, read and checked.

    Args:
        rows: State → event → where it leads. An end has an empty row.
        working: States that the row ``WORKING`` is about.
        of_working, of_open: What these rows say.
    """

    initial: str
    rows: Mapping[str, Row]
    working: frozenset[str] = frozenset()
    of_working: Row
    of_open: Row

    @cached_property
    def states(self) -> tuple[str, ...]:
        """All states, in the order of the table."""
        return tuple(self.rows)

    @cached_property
    def ends(self) -> frozenset[str]:
        """States that nothing leads out of: a run that comes there has ended."""
        return frozenset(state for state, row in self.rows.items() if not row)

    @cached_property
    def rests(self) -> frozenset[str]:
        """States in which nothing is being done: a run waits there for somebody, or for a time."""
        return frozenset(self.rows) - self.ends - self.working

    @cached_property
    def events(self) -> frozenset[str]:
        """All events that some state takes."""
        return frozenset(event for row in (*self.rows.values(), self.of_working, self.of_open) for event in row)

    @cached_property
    def backing(self) -> frozenset[str]:
        """States whose own row has a BACK: one goes back to what was before them."""
        return frozenset(state for state, row in self.rows.items() if BACK in led_to(row))

    @cached_property
    def _answers(self) -> Mapping[str, Row]:
        return {state: self._row_of(state) for state in self.rows}

    def _row_of(self, state: str) -> Row:
        if state in self.ends:
            return {}
        working = self.of_working if state in self.working else {}
        return {**self.of_open, **working, **self.rows[state]}

    def takes(self, state: str) -> Row:
        """What a state takes: event → where it leads; nothing for one that the table does not know."""
        return self._answers.get(state, {})

    def answers(self) -> Iterator[tuple[str, str, Target]]:
        """Each state, each event that it takes, and where that may lead."""
        for state in self.states:
            for event, told in self.takes(state).items():
                yield from ((state, event, to) for to in targets_of(told))

    def moves(self, state: str, event: str) -> bool:
        """Whether the event leads somewhere from this state, or may do so."""
        return any(target is not IGNORE for target in targets_of(self.takes(state).get(event, IGNORE)))

    def unsure(self, event: str, states: Iterable[str]) -> str:
        """The first of some states in which it depends on conditions whether the event leads anywhere; empty: none."""
        told = ((state, self.takes(state).get(event)) for state in states)
        return next((state for state, to in told if isinstance(to, Choice) and not to.is_sure), "")

    def may_pass(self, event: str, state: str) -> bool:
        """Whether it depends on conditions if the event is ignored there."""
        told = self.takes(state).get(event)
        return isinstance(told, Choice) and told.targets[-1] is IGNORE

    @cached_property
    def has_effects(self) -> bool:
        """Whether something is done on the way of a move."""
        targets = (target for state in self.states for target in self.takes(state).values())
        return any(edge.do is not None for target in targets for edge in edges_of(target))

    def lasting(self, state: str, back: str) -> str:
        """To what state a BACK leads once this state has been left: the last one whose own row has no BACK."""
        return back if state in self.backing else state

    @cached_property
    def edges(self) -> frozenset[tuple[str, str]]:
        """All moves from one state to another that the table has; with BACK, all that it may lead to."""
        plain = {(state, to) for state in self.rows for to in led_to(self.takes(state)) if isinstance(to, str)}
        back = {(state, target) for state in self.backing for target in self._before(state, plain)}
        return frozenset((state, target) for state, target in plain | back if state != target)

    def _before(self, state: str, plain: Set[tuple[str, str]]) -> set[str]:
        """States that a BACK of this one may lead to: those without one, from which those with one lead here."""
        found, ahead, seen = set(), [state], {state}
        while ahead:
            here = ahead.pop()
            earlier = {source for source, target in plain if target == here} - seen
            seen |= earlier
            found |= earlier - self.backing
            ahead += earlier & self.backing
        return found

    @cached_property
    def reached(self) -> frozenset[str]:
        """States that lie on some way from the initial one."""
        return self._along(self.initial, self.edges)

    @cached_property
    def ending(self) -> frozenset[str]:
        """States from which some way leads to an end."""
        backwards = {(target, source) for source, target in self.edges}
        return frozenset(state for end in self.ends for state in self._along(end, backwards))

    @staticmethod
    def _along(start: str, edges: Set[tuple[str, str]]) -> frozenset[str]:
        found, ahead = {start}, [start]
        while ahead:
            here = ahead.pop()
            new = {target for source, target in edges if source == here} - found
            found |= new
            ahead += new
        return frozenset(found)


def led_to(row: Row) -> Iterator[Answer]:
    """All that the events of a row may lead to."""
    for target in row.values():
        yield from targets_of(target)


class Then:
    """
    What a handler of a machine returns to move it: outcome, event and move are one transaction.

    If the state does not take the event by then, nothing of it is written, and the attempt has failed.

    Args:
        event: Of the machine's table.
        payload: Of the event; plain JSON.
    """

    __slots__ = ("event", "payload")

    def __init__(self, event: str, /, **payload: Any) -> None:
        self.event = as_text(event)
        self.payload = payload

    def __repr__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.payload.items())
        return f"Then({self.event!r}{said})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Then) and (self.event, self.payload) == (other.event, other.payload)

    __hash__ = None  # type: ignore[assignment]  # Its payload has none.
