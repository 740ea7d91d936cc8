"""Reads the table of a machine as it is declared, and finds what is wrong with it, with the remedy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from enum import Enum, EnumMeta
from typing import Any, Final, TypeGuard

from timeline.definition.payload_types import type_problem
from timeline.definition.tables import BACK, ERASED, OPEN, WORKING, Answer, Row, Several, Table, Target
from timeline.payloads import as_text

MAX_STATE: Final = 50
MAX_EVENT: Final = 100

Problem = tuple[str, str]

_EMPTY: Final = "An end has a row that is empty: {…: {}}."


class Unreadable(Exception):
    """
    What is declared is no table.

    Args:
        problem, remedy: As for ``DefinitionError``.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(problem)


def read_table(declared: object, *, initial: object, working: object) -> Table:
    """
    Read a table: names become plain text, also where they are members of an enumeration.

    Args:
        declared: State, ``WORKING`` or ``OPEN`` → event → state, ``BACK``, ``STAY`` or ``IGNORE``.
        initial: The state in which a run begins.
        working: States that ``WORKING`` stands for.

    Raises:
        Unreadable: for the first mistake found.
    """
    if not isinstance(declared, Mapping) or not declared:
        raise Unreadable(f"has table = {declared!a:.60}.", 'Use a dict: {"state": {"name.of.event": "next state"}}.')
    rows: dict[str, Row] = {}
    several: dict[Several, Row] = {}
    for state, row in declared.items():
        if isinstance(state, Several):
            several[state] = _row(state, row)
        else:
            rows[_state(state, "has a state")] = _row(state, row)
    if isinstance(working, str) or not isinstance(working, Collection):
        raise Unreadable(f"has working = {working!a:.60}.", "Give states, as a tuple.")
    return Table(
        initial=_state(initial, "has initial ="),
        rows=rows,
        working=frozenset(_state(state, "has as working") for state in working),
        of_working=several.get(WORKING, {}),
        of_open=several.get(OPEN, {}),
    )


def _row(state: object, row: object) -> dict[str, Target]:
    if not isinstance(row, Mapping):
        remedy = f'Use a dict: {{"name.of.event": "next state"}}. {_EMPTY}'
        raise Unreadable(f"has {row!a:.60} as the row of {_shown(state)}.", remedy)
    read: dict[str, Target] = {}
    for event, target in row.items():
        if not _is_text(event, MAX_EVENT):
            remedy = f"Use text without blanks, {MAX_EVENT} characters at most, or a StrEnum."
            raise Unreadable(f"has an event {event!a:.60} in the row of {_shown(state)}.", remedy)
        if event == ERASED:
            remedy = (
                "This event is written where something is erased, and moves nothing. Call erase, and use another here."
            )
            raise Unreadable(f"has the event {ERASED!r} in the row of {_shown(state)}.", remedy)
        if isinstance(target, list | tuple | set | frozenset):
            where = f"{_shown(state)} and {as_text(event)!r}"
            raise Unreadable(f"has several targets for {where}.", "An event leads to one state: use an event for each.")
        read[as_text(event)] = target if isinstance(target, Answer) else _state(target, "leads to")
    return read


def _state(state: object, said: str) -> str:
    if not _is_text(state, MAX_STATE):
        remedy = f"Use text without blanks, {MAX_STATE} characters at most, or a StrEnum."
        raise Unreadable(f"{said} {state!a:.60}, which is no name of a state.", remedy)
    return as_text(state)


def _is_text(name: object, longest: int) -> TypeGuard[str]:
    """Whether it is a name that any database stores: not half a character, say."""
    return isinstance(name, str) and 0 < len(name) <= longest and not re.search(r"[\s\0\ud800-\udfff]", name)


def _shown(state: object) -> str:
    return repr(as_text(state)) if isinstance(state, str) else repr(state)


def table_problems(table: Table, *, members: EnumMeta | None) -> Iterator[Problem]:
    """
    List what is wrong with a table, as (problem, remedy).

    Args:
        table: As it was read.
        members: The enumeration that the initial state is a member of; None: states are plain text.
    """
    yield from _unknown(table, members)
    yield from _two_targets(table)
    yield from _misplaced(table)
    if lost := [state for state in table.states if state not in table.reached]:
        yield (
            f"has {lost[0]!r}, which no way leads to from {table.initial!r}.",
            "Let an event lead there, or remove it.",
        )
    if stuck := [state for state in table.states if state not in table.ending]:
        yield f"has {stuck[0]!r}, from which no way leads to an end.", f"Let an event lead on. {_EMPTY}"


def _misplaced(table: Table) -> Iterator[Problem]:
    """What stands where it means nothing."""
    if table.of_working and not table.working:
        yield "has a row WORKING, but no state that is working.", "Name them: working = (…)."
    if ends := sorted(table.working & table.ends):
        yield f"has the end {ends[0]!r} as working.", "Leave it out: an end takes no event."
    if table.initial in table.ends:
        yield f"begins in {table.initial!r}, which is an end.", "Give it a row, or begin elsewhere."
    if table.initial in table.backing:
        yield f"begins in {table.initial!r}, which has a BACK, and nothing to go back to.", "Name the state instead."
    for name, row in (("WORKING", table.of_working), ("OPEN", table.of_open)):
        if BACK in row.values():
            yield f"has a BACK in the row {name}.", "BACK stands in the rows of states that one goes back from."


def _unknown(table: Table, members: EnumMeta | None) -> Iterator[Problem]:
    """States that are named, and have no row."""
    named = {"initial": [table.initial], "working": sorted(table.working)}
    for state, row in [*table.rows.items(), ("WORKING", table.of_working), ("OPEN", table.of_open)]:
        for event, target in row.items():
            named.setdefault(f"{state}, {event}", []).extend([] if isinstance(target, Answer) else [target])
    for place, states in named.items():
        for state in states:
            if state not in table.rows:
                near = get_close_matches(state, table.states, n=1)
                meant = f"Did you mean {near[0]!r}? " if near else ""
                yield f"names the state {state!r} ({place}), which has no row.", f"{meant}Give it a row. {_EMPTY}"
    named_members: Mapping[str, Enum] = members.__members__ if members is not None else {}
    for name, member in named_members.items():
        if as_text(member.value) not in table.rows:
            yield f"has no row for {type(member).__name__}.{name}.", f"Give it a row, or remove it. {_EMPTY}"


def _two_targets(table: Table) -> Iterator[Problem]:
    for state, row in table.rows.items():
        if state in table.ends:
            continue
        known: dict[str, tuple[str, Target]] = {event: ("its own row", target) for event, target in row.items()}
        working = table.of_working if state in table.working else {}
        for said, others in (("WORKING", working), ("OPEN", table.of_open)):
            for event, target in others.items():
                where, before = known.setdefault(event, (said, target))
                if before != target:
                    yield (
                        f"has two targets for {state!r} and {event!r}: {before!r} in {where}, {target!r} in {said}.",
                        "Name it in one of them only.",
                    )


def payload_problems(payloads: object, known: Collection[str]) -> Iterator[Problem]:
    """
    List what is wrong with the declared types of payloads, as (problem, remedy).

    Args:
        payloads: Event → a dataclass or a TypedDict.
        known: Events of the machine.
    """
    if not isinstance(payloads, Mapping):
        yield f"has payloads = {payloads!a:.60}.", 'Use a dict: {"name.of.event": a dataclass or a TypedDict}.'
        return
    for event, declared in payloads.items():
        if not isinstance(event, str) or as_text(event) not in known:
            yield f"has a payload of {event!a:.60}, which it knows nowhere.", "Name an event of its table."
        elif problem := type_problem(declared):
            yield (
                f"has as the payload of {as_text(event)!r} {problem}.",
                "Use a dataclass or a TypedDict of what JSON has: str, int, float, bool, None, list, dict, Literal.",
            )


def texts_of(payloads: Mapping[Any, type]) -> dict[str, type]:
    """Types of payloads by the plain names of their events."""
    return {as_text(event): declared for event, declared in payloads.items()}
