"""Timers of a machine: tasks that the definition makes, which move it when nothing else has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from timeline.definition.handlers import Options, Task
from timeline.features.machines.parse import Unreadable
from timeline.features.machines.table import UNSURE, Table, Then
from timeline.payloads import as_text
from timeline.suggestions import did_you_mean, near
from timeline.timing import When, anchor_of

PREFIX: Final = "timer:"  # No method is called so.


class Never(Enum):
    """In ``timers``: nothing comes by itself."""

    NEVER = "NEVER"

    def __repr__(self) -> str:
        return "never"


never: Final = Never.NEVER


class Timer(Task[Any, ..., Any]):
    """A task whose outcome is an event: it moves the machine, and does nothing else."""

    def __init__(self, event: str, when: When) -> None:
        def tell(_context: object, *_entity: object) -> Then:
            return Then(event)

        tell.__name__ = f"{PREFIX}{event}"
        super().__init__(tell, Options(when=replace(when, tells=event), atomic=False))
        self.event = event

    @property
    def is_timer(self) -> bool:
        """It is."""
        return True

    def bound_to(self, context: Any) -> Callable[..., Any]:
        """The method, which is none of the class."""
        return lambda *entity: self.method(context, *entity)


@dataclass(frozen=True)
class Timers:
    """
    What a machine declares of its timers, in order. ``never``: states in which nothing comes by itself, as somebody has said.
    """

    tasks: Mapping[str, Timer] = field(default_factory=dict)
    never: frozenset[str] = frozenset()


def read_timers(declared: object, table: Table) -> Timers:
    """Read ``timers``: event → when it comes; a rest, or several → ``never``. Raises ``Unreadable`` for the first mistake."""
    if not isinstance(declared, Mapping):
        raise Unreadable(
            f"has timers = {declared!a:.60}.", 'Use a dict: {"otp.timed_out": on(S.OTP_REQUIRED, minutes=10)}.'
        )
    tasks: dict[str, Timer] = {}
    without: list[str] = []
    for key, value in declared.items():
        if value is never:
            without += [_rest(state, table) for state in (key if isinstance(key, tuple) else (key,))]
            continue
        for event, when in _timers_of(_event(key, table), value, table):
            if f"{PREFIX}{event}" in tasks:
                raise Unreadable(
                    f"has two timers of {event!r}.", "Name all its states in one of them, or use another event."
                )
            tasks[f"{PREFIX}{event}"] = Timer(event, when)
    return Timers(tasks, frozenset(without))


def _timers_of(event: str, when: Any, table: Table) -> Iterator[tuple[str, When]]:
    """One timer; of what backs off so many times, also that of the event that comes in the end."""
    when = _bound(event, when, table)
    yield event, when
    if when.backoff is not None and when.backoff.spent:
        spent = _event(when.backoff.spent, table)
        used_up = replace(when, backoff=replace(when.backoff, is_spent=True))
        _check_taken(spent, used_up.during, table)
        yield spent, used_up


def _bound(event: str, given: Any, table: Table) -> When:
    """See that it is a time that a timer may have, and bind it to the states that it is about."""
    said = f"has a timer of {event!r} that"
    if not isinstance(given, When):
        shown = f"has a timer of {event!r}: {given!a:.60}."
        raise Unreadable(shown, 'Give on(S.X, minutes=10), at("a_field") or never.')
    when = _of_state(given, said, table)
    for problem, remedy in when.problems:
        raise Unreadable(f"{said} {problem}", remedy)
    if when.predecessor_name or when.awaits or when.repeats is not None:
        remedy = "Give a time of a state, of a field or of the run's start; or let a handler return Then(…)."
        raise Unreadable(f"{said} hangs on another task, on an event or on a series.", remedy)
    for state in when.during:
        if state not in table.rows:
            remedy = did_you_mean(state, table.states, otherwise=f"Name one such as {table.initial!r}.")
            raise Unreadable(f"{said} names the state {state!r}, which has no row.", remedy)
    during = when.during or tuple(state for state in table.states if _takes(event, state, table))
    _check_taken(event, during, table)
    return replace(when, during=during)


def _of_state(when: When, said: str, table: Table) -> When:
    """What counts from a state by its name, which might be that of a field, as such."""
    name = when.anchor.removeprefix("field:") if when.anchor.startswith("field:") else ""
    if name not in table.rows:
        return when
    if when.verb == "before":
        raise Unreadable(f"{said} comes before {name!r} is entered.", f"Count forwards: on({name!r}, …).")
    problems = tuple(known for known in when.problems if "is not the name of a field" not in known[0])
    return replace(when, verb="after", anchor=anchor_of([name]), during=(name,), problems=problems)


def _check_taken(event: str, states: tuple[str, ...], table: Table) -> None:
    """See that the event leads somewhere from each of these states."""
    for state in states:
        if not _takes(event, state, table):
            remedy = "Let it lead somewhere from there, or leave the state out."
            raise Unreadable(f"has a timer of {event!r} in {state!r}, which does not take that or ignores it.", remedy)
    if state := table.unsure(event, states):
        raise Unreadable(f"has a timer of {event!r} in {state!r}, which takes that by conditions alone.", UNSURE)
    if not states:
        raise Unreadable(f"has a timer of {event!r}, which is ignored in all states.", "Let it lead somewhere.")


def _takes(event: str, state: str, table: Table) -> bool:
    return table.moves(state, event)


def _event(name: object, table: Table) -> str:
    if not isinstance(name, str) or as_text(name) not in table.events:
        remedy = did_you_mean(
            as_text(name) if isinstance(name, str) else "",
            table.events,
            otherwise="Name an event of the table, or say of a state that it is never.",
        )
        raise Unreadable(f"has a timer of {name!a:.60}, which is no event of its table.", remedy)
    return as_text(name)


def _rest(state: object, table: Table) -> str:
    named = as_text(state) if isinstance(state, str) else ""
    if named not in table.rests:
        rest = next(iter(near(named, table.rests) or sorted(table.rests)), "")
        remedy = f"Name a rest such as {rest!r}." if rest else "It has none: leave it out."
        raise Unreadable(f"says never of {state!a:.60}, which is no rest: neither working nor an end.", remedy)
    return named
