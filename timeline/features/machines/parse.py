"""Reads the table of a machine as it is declared, and finds what is wrong with it, with the remedy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, EnumMeta
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from django.utils.functional import Promise

from timeline.definition.names import ERASED
from timeline.definition.payload_types import type_problem
from timeline.exceptions import HandlerSignal
from timeline.features.machines.choices import Choice, Edge, edge_problems, targets_of
from timeline.features.machines.table import (
    BACK,
    IGNORE,
    OPEN,
    UNSURE,
    WORKING,
    Answer,
    Row,
    Several,
    Table,
    TableAnswer,
    Target,
    led_to,
)
from timeline.payloads import as_text
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

MAX_STATE: Final = 50
MAX_EVENT: Final = 100

Problem = tuple[str, str]

_EMPTY: Final = "An end has a row that is empty: {…: {}}."

_SEVERAL: Final = (Edge, list, tuple, set, frozenset)
Errors = Mapping[type[Exception], str]
MAX_PERMISSION: Final = 200
MAX_TITLE: Final = 100
_PERMISSION: Final = re.compile(r"[A-Za-z_][\w.]*\.\w+")


class Unreadable(Exception):
    """What is declared is no table; with the problem and its remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(problem)


def read_table(declared: object, *, initial: object, working: object) -> Table:
    """
    Read state, ``WORKING`` or ``OPEN`` → event → state, ``BACK``, ``STAY`` or ``IGNORE``. ``Unreadable``: the first mistake.
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
        where = f"{_shown(state)} and {as_text(event)!r}"
        read[as_text(event)] = _several(target, where) if isinstance(target, _SEVERAL) else _target(target)
    return read


def _target(target: object) -> Answer:
    return target if isinstance(target, TableAnswer) else _state(target, "leads to")


def _several(target: Any, where: str) -> Target:
    """Read one ``to``, or several in a list; the last may be a plain target."""
    given = [target] if isinstance(target, Edge) else list(target)
    if isinstance(target, set | frozenset) or not any(isinstance(each, Edge) for each in given):
        remedy = "An event leads to one state: use an event for each, or say what it depends on: [to(…, when=…), …]."
        raise Unreadable(f"has several targets for {where}.", remedy)
    edges = [each if isinstance(each, Edge) else Edge(each) for each in given]
    edges = [replace(each, target=_target(each.target)) for each in edges]
    for problem, remedy in edge_problems(edges, IGNORE):
        raise Unreadable(f"{problem}, for {where}.", remedy)
    return Choice(tuple(edges))


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
    """What is wrong with a table, as (problem, remedy). ``members``: enumeration of its states; None: they are plain text."""
    yield from _unknown(table, members)
    yield from _two_targets(table)
    yield from _misplaced(table)
    if lost := [state for state in table.states if state not in table.reached]:
        is_word = lost[0].upper() in Several.__members__
        meant = f"Did you mean {lost[0].upper()}, without quotes? " if is_word else ""
        yield (
            f"has {lost[0]!r}, which no way leads to from {table.initial!r}.",
            f"{meant}Let an event lead there, or remove it.",
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
        if BACK in led_to(row):
            yield f"has a BACK in the row {name}.", "BACK stands in the rows of states that one goes back from."


def _unknown(table: Table, members: EnumMeta | None) -> Iterator[Problem]:
    """States that are named, and have no row."""
    named = {"initial": [table.initial], "working": sorted(table.working)}
    for state, row in [*table.rows.items(), ("WORKING", table.of_working), ("OPEN", table.of_open)]:
        for event, target in row.items():
            led = [to for to in targets_of(target) if isinstance(to, str)]
            named.setdefault(f"{state}, {event}", []).extend(led)
    for place, states in named.items():
        for state in states:
            if state not in table.rows:
                remedy = f"{_meant(state, table)} Give it a row. {_EMPTY}".lstrip()
                yield f"names the state {state!r} ({place}), which has no row.", remedy
    named_members: Mapping[str, Enum] = members.__members__ if members is not None else {}
    for name, member in named_members.items():
        if as_text(member.value) not in table.rows:
            yield f"has no row for {type(member).__name__}.{name}.", f"Give it a row, or remove it. {_EMPTY}"


def _meant(state: str, table: Table) -> str:
    """What is meant by a state that has no row: an answer that was written as text, or a state that is spelled alike."""
    if state.upper() in TableAnswer.__members__:
        return f"Did you mean {state.upper()}, without quotes?"
    return did_you_mean(state, table.states)


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
                        f"has two targets for {state!r} and {event!r}: {_led(before)} in {where}, {_led(target)} in {said}.",
                        "Name it in one of them only.",
                    )


def _led(target: Target) -> str:
    return " or ".join(repr(to) for to in targets_of(target))


def payload_problems(payloads: object, known: Collection[str]) -> Iterator[Problem]:
    """What is wrong with declared types of payloads (event → a dataclass or TypedDict), as (problem, remedy)."""
    if not isinstance(payloads, Mapping):
        yield f"has payloads = {payloads!a:.60}.", 'Use a dict: {"name.of.event": a dataclass or a TypedDict}.'
        return
    for event, declared in payloads.items():
        if not isinstance(event, str) or as_text(event) not in known:
            remedy = did_you_mean(event, map(as_text, known), otherwise="Name an event of its table.")
            yield f"has a payload of {event!a:.60}, which it knows nowhere.", remedy
        elif problem := type_problem(declared):
            yield (
                f"has as the payload of {as_text(event)!r} {problem}.",
                "Use a dataclass or a TypedDict of what JSON has: str, int, float, bool, None, list, dict, Literal.",
            )


def texts_of(payloads: Mapping[Any, type]) -> dict[str, type]:
    """Types of payloads by the plain names of their events."""
    return {as_text(event): declared for event, declared in payloads.items()}


def read_errors(declared: object, table: Table) -> dict[type[Exception], str]:
    """Read ``errors``: class of what a handler raises → event. Raises ``Unreadable`` for the first mistake."""
    if not isinstance(declared, Mapping):
        raise Unreadable(f"has errors = {declared!a:.60}.", 'Use a dict: {PortalTimeout: "portal.error"}.')
    read = {_class(key): _event(key, event, table) for key, event in declared.items()}
    for state in sorted(table.working) if Exception in read else ():
        if not table.moves(state, read[Exception]):
            remedy = "Let it lead somewhere from there: a row WORKING is about all states that are working."
            raise Unreadable(f"means {read[Exception]!r} by Exception, which {state!r} does not take.", remedy)
    for kind, event in read.items():
        if state := table.unsure(event, table.states):
            raise Unreadable(f"means {event!r} by {kind.__name__}, which {state!r} takes by conditions alone.", UNSURE)
    return read


def events_of(error: BaseException, errors: Errors) -> Iterator[str]:
    """The events that an error may mean: that of its own class first, then those of the classes behind it."""
    for kind in type(error).__mro__:
        if kind in errors:
            yield errors[kind]


def _class(key: Any) -> type[Exception]:
    if not isinstance(key, type) or not issubclass(key, Exception):
        raise Unreadable(
            f"has errors of {key!a:.60}, which is no class of exceptions.", "Name a subclass of Exception."
        )
    if issubclass(key, HandlerSignal):
        remedy = "It says what becomes of the task. Return Then(…) to move the machine."
        raise Unreadable(f"has errors of {key.__name__}, which a handler raises on purpose.", remedy)
    return key


def _event(key: Any, event: object, table: Table) -> str:
    if not isinstance(event, str) or as_text(event) not in table.events:
        named = as_text(event) if isinstance(event, str) else ""
        remedy = did_you_mean(named, table.events, otherwise="Name an event of the table.")
        raise Unreadable(f"means {event!a:.60} by {key.__name__}, which is no event of its table.", remedy)
    return as_text(event)


class Asked(Enum):
    """In ``asks``: somebody who is asked for what they are, whatever their permissions."""

    OWNER = "OWNER"  # Whom the entity belongs to: the timeline's ``owner``, or the entity itself, if it is an account.

    def __repr__(self) -> str:
        return self.name


OWNER: Final = Asked.OWNER


Who = str | Asked


@dataclass(frozen=True, slots=True)
class AskedEvent:
    """
    Who may say an event: staff with one of the permissions (``shop.resolve_order``), or the entity's owner; ``title``: what
    its button says, perhaps in many languages. Empty: the name of the event.
    """

    permissions: tuple[str, ...] = ()
    owner: bool = False
    title: StrPromise | str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """What ``ask`` gives, as it was written."""

    title: StrPromise | str
    by: Who | Collection[Who]


def ask(title: StrPromise | str, /, *, by: Who | Collection[Who]) -> Ask:
    """
    In ``asks`` of a machine: an event of which people are asked, with the words for its button.

    Args:
        title: What somebody says with it, ``_("It can go on")``; of ``gettext_lazy`` for more than one language.
        by: Who may: a permission ``app.codename``, ``OWNER``, or several of these.
    """
    return Ask(title, by)


def read_asks(declared: object, table: Table) -> dict[str, AskedEvent]:
    """
    Read ``asks``: event → a permission, ``OWNER``, or several of which one is enough; or these with a title. ``Unreadable``:
    the first mistake.
    """
    if not isinstance(declared, Mapping):
        remedy = 'Use a dict: {"operator.resolved": "shop.resolve_order", "otp.given": OWNER}.'
        raise Unreadable(f"has asks = {declared!a:.60}.", remedy)
    return {_event_asked(event, table): _ask(event, who) for event, who in declared.items()}


def _event_asked(name: object, table: Table) -> str:
    said = as_text(name) if isinstance(name, str) else ""
    if said not in table.events:
        remedy = did_you_mean(said, table.events, otherwise="Name an event of its table.")
        raise Unreadable(f"has asks for {name!a:.60}, which no state takes.", remedy)
    if not any(table.moves(state, said) for state in table.states):
        raise Unreadable(f"has asks for {said!r}, which all states ignore.", "Let it lead somewhere.")
    return said


def _ask(event: object, asked: object) -> AskedEvent:
    if isinstance(asked, Promise) or (isinstance(asked, str) and " " in asked.strip()):
        remedy = 'Say both: ask(_("It can go on"), by="app.codename").'
        raise Unreadable(f"has a title for {event!a:.60}, and says not who may say it.", remedy)
    title, who = (_title(event, asked.title), asked.by) if isinstance(asked, Ask) else ("", asked)
    several: Collection[Any] = who if isinstance(who, tuple | list | set | frozenset) else (who,)
    for one in several:
        if one is not OWNER and not (isinstance(one, str) and _is_permission(as_text(one))):
            remedy = 'Name one as has_perm() takes it, "app.codename", or say OWNER.'
            raise Unreadable(f"asks for {event!a:.60} by {one!a:.60}, which is no permission.", remedy)
    if not several:
        raise Unreadable(f"asks nobody for {event!a:.60}.", "Name a permission, or leave the event out.")
    permissions = sorted({as_text(one) for one in several if one is not OWNER})
    return AskedEvent(tuple(permissions), OWNER in several, title)


def _title(event: object, title: object) -> StrPromise | str:
    """A lazy one is not read: when a class is made, no language is known."""
    if isinstance(title, Promise) or (isinstance(title, str) and 0 < len(title.strip()) <= MAX_TITLE):
        return cast("StrPromise | str", title)
    remedy = f"Use 1 to {MAX_TITLE} characters, or leave it out: then its button has the name of the event."
    raise Unreadable(f"asks for {event!a:.60} with {title!a:.60} as its title.", remedy)


def _is_permission(name: str) -> bool:
    return len(name) <= MAX_PERMISSION and _PERMISSION.fullmatch(name) is not None


def owner_problems(asks: Mapping[str, AskedEvent], *, has_owner: bool) -> Iterator[tuple[str, str]]:
    """Say which event is asked of an owner, where an entity can have none, as (problem, remedy)."""
    if of_owner := [event for event, ask in asks.items() if ask.owner and not has_owner]:
        yield (
            f"asks the owner for {of_owner[0]!r}, and its entities have none.",
            'Name the foreign key that leads to a user: owner = "account"; or name a permission.',
        )
