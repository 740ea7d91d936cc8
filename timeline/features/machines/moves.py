"""Machines: how an event moves their runs. All moves are decided before anything is written, and are written in sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.definition import BACK, IGNORE, STAY, Definition
from timeline.definition.payload_types import check_payload
from timeline.exceptions import InvalidInput, MoveNotAllowed, NoOpenRun, WrongEntity
from timeline.features.machines.choices import Choice
from timeline.features.machines.declaration import known_state, table_of, unknown_event
from timeline.features.machines.edges import see_pairs
from timeline.features.machines.passages import Taken, entities_asked, refuse_within, way_of
from timeline.features.machines.store import (
    NewState,
    can_read_ahead,
    last_moved,
    lock_entity_to_move,
    lock_to_move,
    move_runs,
    runs_to_move,
)
from timeline.lifecycle import Reason, ReasonCode, RunEnd
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import kinds_of
from timeline.operations.leave import Ended, end_runs
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.features.machines.table import Target
    from timeline.operations.record_event import EventFields, Subject


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What the caller wants of machines.

    Args:
        machine: Name of the machine that has to take the event; empty: any machine may.
        expect: The state in which its runs have to be; empty: any.
        run_key: The key of its runs to move; None: that which the event gives, or all runs.
        visit: Id of the run that has to be open, and how often it has to have moved; None: not checked.
    """

    machine: str = ""
    expect: str = ""
    run_key: str | None = None
    visit: tuple[UUID, int] | None = None

    def keys(self, definitions: Iterable[Definition], payload: Mapping[str, Any]) -> dict[str, str]:
        """
        Machine → key of the runs that an event moves; left out: all. ``InvalidInput``: the payload lacks a value of the key.
        """
        own = {} if self.run_key is None else {self.machine: self.run_key}
        others = [known for known in definitions if known.key and known.name not in own]
        return {known.name: known.run_key(payload) for known in others} | own


ANY: Final = Wish()


@dataclass(frozen=True, slots=True)
class Moving:
    """
    A move, decided and not written yet, of an entity by the name of the event's row. ``rows``: the locked tasks to plan from
    after it; None: not read yet. ``taken``: the way that it takes, if its table has conditions or effects.
    """

    subject: EntityRef
    definition: Definition
    run: TimelineRun
    target: str
    rows: list[ScheduledTask] | None = None
    taken: Taken | None = None


def check_wish(
    name: str, labels: Iterable[str], payload: Mapping[str, Any], *, machine: str = "", expect: str | None = None
) -> Wish:
    """
    Check what can be checked about an event without a query. An empty label is the system.

    Raises:
        UnknownTimeline: if there is no timeline of the name ``machine``.
        UnknownMachineEvent: if that machine has no such event in its table (nor, without ``expect``, among its starts and
            exits); or with ``expect`` and no name, if no machine about the entities has it.
        WrongEntity: if the machine is about other entities.
        InvalidInput: naming ``machine``, ``expect`` or ``payload``.
    """
    machines = registry.machines()
    if not machines and not machine and expect is None:
        return ANY
    kinds = {kind for label in set(labels) for kind in kinds_of(label)}
    known = [definition for definition in machines if definition.label in kinds]
    named = _named(name, known, machine, expect, kinds)
    for definition in known:
        if name in definition.payloads:
            check_payload(payload, definition.payloads[name], event=name)
    if named is None:
        return ANY
    return Wish(named.name, "" if expect is None else known_state(named, "expect", expect))


def _named(
    event: str, known: Sequence[Definition], machine: str, expect: str | None, kinds: Collection[str]
) -> Definition | None:
    """The machine that the caller means; None: no particular one."""
    if machine:
        definition = registry.timeline(machine)
        table = table_of(definition)
        if definition.label not in kinds:
            said = {"machine": machine, "wanted": definition.label or _("no entity")}
            problem = _("the machine %(machine)r is about %(wanted)s.")
            raise WrongEntity(problem, _("Give the entity it is about."), **said)
        known_to_it = table.events if expect is not None else {*table.events, *definition.starts_on, *definition.exits}
        if event not in known_to_it:
            raise unknown_event(definition, event)
        return definition
    if expect is None:
        return None
    if not known:
        problem = _("no machine is about this entity.")
        raise InvalidInput("expect", problem, _("Leave it out, or give an entity of a machine."))
    taking = [definition for definition in known if event in table_of(definition).events]
    if not taking:
        raise unknown_event(known[0], event)
    if len(taking) > 1:
        names = ", ".join(definition.name for definition in taking)
        problem = _("several machines take %(event)s: %(names)s.")
        raise InvalidInput("expect", problem, _("Name the one you mean: machine=…"), event=event, names=names)
    return taking[0]


def is_moving(event: str, names: Iterable[EntityRef]) -> bool:
    """Whether a machine about entities of these kinds has the event in its table."""
    labels = {definition.label for definition in registry.machines(event)}
    return bool(labels) and any(name.label in labels for name in names)


def decide_moves(
    said: EventFields, subjects: Mapping[EntityRef, Subject], wish: Wish = ANY, *, ahead: bool = False, using: str
) -> list[Moving]:
    """
    Decide which runs an event moves, for locked entities; runs whose state ignores it are left out. One statement, and a
    second if a machine has no open run. Writes nothing.

    ``ahead``: read the tasks for planning after the moves in the same trip. It is done for one entity, if all moves need them
    or none, and if the database can.

    Raises:
        MoveNotAllowed: if a run is in a state that does not take the event, or in another than expected, or has ended.
        NoOpenRun: if the machine that the caller named has no run for an entity.
        InvalidInput: if the payload lacks a value for the key of a run.
    """
    names = {name: subject.ref for subject in subjects.values() for name in subject.names}
    asked = _taking(said.name, names)
    if not asked:
        return []
    known = {definition.name: definition for _ref, definition in asked}
    keys = wish.keys(known.values(), said.payload)
    refs = {ref for ref, _definition in asked}
    rows: dict[UUID, list[ScheduledTask]] = {}
    if ahead and not keys and _is_readable_ahead(asked, said.name, using):
        [ref] = refs
        pairs = next(iter(subjects.values())).ahead
        if pairs is None:
            pairs = lock_to_move(ref, known, _beside(asked, said.name), using=using)
        rows = {run.id: tasks for run, tasks in pairs}
        runs = _by_place(run for run, _tasks in pairs)
    else:
        runs = _by_place(runs_to_move(refs, {name: keys.get(name) for name in known}, using=using))
    without = [(ref, definition) for ref, definition in asked if not runs[ref, definition.name]]
    if without:
        going_on = {names[ref] for ref, definition in asked if runs[ref, definition.name]}
        _refuse_without(said, without, keys, wish, using, beside={ref for ref in refs if names[ref] in going_on})
    moves = [
        (names[ref], definition, run, _answer(run, definition, said.name, wish))
        for ref, definition in asked
        for run in runs[ref, definition.name]
    ]
    held = {name: entity for subject in subjects.values() for name, entity in subject.there.items()}
    entities = entities_asked(((run, answer) for *_names, run, answer in moves), held, using=using)
    refuse_within((run for *_names, run, answer in moves if answer is not IGNORE), said.name)
    found = []
    for subject, definition, run, answer in moves:
        taken = None
        if isinstance(answer, Choice):
            taken = way_of(run, answer, entities[run.entity_ref], said)
            answer = None if taken is None else taken.edge.target  # noqa: PLW2901 (what it comes to)
        target = _target(run, definition, said.name, answer)
        if target is not None:
            found.append(Moving(subject, definition, run, target, rows.get(run.id), taken))
    return found


def lock_ahead(event: str, subject: Subject, wish: Wish, *, using: str) -> datetime | None:
    """
    Lock an entity whose fields are not read, and the runs that the event moves, in one trip; they go to ``Subject.ahead``.
    Gives the database's clock at the lock; None: no query was made, as one trip is not enough.

    Raises:
        WrongEntity, WrongIsolation: as for ``lock_entity_to_move``.
    """
    asked = _taking(event, subject.names)
    has_keys = wish.run_key is not None or any(known.key for _ref, known in asked)
    if not asked or has_keys or not _is_readable_ahead(asked, event, using):
        return None
    if subject.sought != (subject.given,) or asked[0][0] != subject.given:
        return None
    names = (known.name for _ref, known in asked)
    found = lock_entity_to_move(subject.given, names, _beside(asked, event), using=using)
    if found is None:
        return None
    subject.there = {subject.given: None}
    at, subject.ahead = found
    return at


_Asked = Sequence[tuple[EntityRef, Definition]]


def _taking(event: str, names: Iterable[EntityRef]) -> list[tuple[EntityRef, Definition]]:
    """The machines that have the event, each with the names of entities that it may be about."""
    machines = registry.machines(event)
    names = list(names) if machines else ()
    return [(ref, known) for known in machines for ref in names if ref.label == known.label]


def _is_readable_ahead(asked: _Asked, event: str, using: str) -> bool:
    """Whether one trip can read all that is needed: for one entity, if all moves have tasks after them, or none has."""
    if len({ref for ref, _known in asked}) != 1 or not can_read_ahead(using):
        return False
    return all(event in known.bound_events for _ref, known in asked) or _is_loose(asked, event)


def _is_loose(asked: _Asked, event: str) -> bool:
    """Whether no task follows a move by the event."""
    return all(event in known.loose_events for _ref, known in asked)


def _beside(asked: _Asked, event: str) -> Iterable[str] | None:
    """Keys of the tasks that are bound to no state; None: no task has to be read."""
    return None if _is_loose(asked, event) else chain.from_iterable(known.keys_beside_states for _ref, known in asked)


def _by_place(runs: Iterable[TimelineRun]) -> defaultdict[tuple[EntityRef, str], list[TimelineRun]]:
    """Runs by entity and machine."""
    found: defaultdict[tuple[EntityRef, str], list[TimelineRun]] = defaultdict(list)
    for run in runs:
        found[run.entity_ref, run.timeline].append(run)
    return found


def _refuse_without(
    said: EventFields,
    without: Sequence[tuple[EntityRef, Definition]],
    keys: Mapping[str, str],
    wish: Wish,
    using: str,
    *,
    beside: Collection[EntityRef],
) -> None:
    """
    Refuse the event for entities whose last run has ended, unless it begins another run. Entities in ``beside`` have an open
    run of another machine, which takes or refuses the event; but a machine that the caller named has to take it.
    """
    asked = [(ref, definition) for ref, definition in without if said.name not in definition.starts_on]
    asked = [(ref, definition) for ref, definition in asked if ref not in beside or definition.name == wish.machine]
    refs = {ref for ref, _definition in asked}
    names = {known.name: keys.get(known.name) for _ref, known in asked}
    ended = _by_place(last_moved(refs, names, using=using) if asked else ())
    for ref, definition in asked:
        for run in ended[ref, definition.name]:
            raise MoveNotAllowed(definition.name, str(ref), run.state, said.name, [], ended=True)
    expecting = without if wish.expect else asked
    for ref, definition in expecting if wish.machine else ():
        if definition.name == wish.machine:
            raise NoOpenRun(definition.name, str(ref), keys.get(definition.name, ""))


def _answer(run: TimelineRun, definition: Definition, event: str, wish: Wish) -> Target | None:
    """What the table says of the event for a run; None: nothing. ``MoveNotAllowed`` if it is not as the caller wished."""
    takes = table_of(definition).takes(run.state)
    if wish.expect and wish.machine == definition.name and run.state != wish.expect:
        raise MoveNotAllowed(
            definition.name, str(run.entity_ref), run.state, event, sorted(takes), expected=wish.expect
        )
    if wish.visit is not None and wish.machine == definition.name and wish.visit != (run.pk, run.moves):
        raise MoveNotAllowed(definition.name, str(run.entity_ref), run.state, event, sorted(takes), moved=True)
    return takes.get(event)


def _target(run: TimelineRun, definition: Definition, event: str, answer: Target | None) -> str | None:
    """The state that a run moves to; None: it stays as it is. ``MoveNotAllowed``: its table, or no condition, lets it move."""
    table = table_of(definition)
    leads_on = answer is not BACK or (run.state, run.back) in table.edges
    if answer is None or not leads_on:  # If the table was another when the run moved, there may be no way back.
        takes = table.takes(run.state)
        asked = takes.get(event)
        unmet = [edge.condition for edge in asked.edges] if isinstance(asked, Choice) and answer is None else []
        raise MoveNotAllowed(definition.name, str(run.entity_ref), run.state, event, sorted(takes), unmet=unmet)
    if answer is IGNORE:
        return None
    if answer is BACK:
        return run.back
    return run.state if answer is STAY else str(answer)


def write_moves(
    moves: Sequence[Moving], said: EventFields, causes: Mapping[EntityRef, UUID], *, now: datetime, using: str
) -> tuple[list[TimelineRun], Ended]:
    """
    Write moves of one event, with their entries. Gives the runs after it, and what has ended, with the tasks cancelled with
    them. A run at an end of its table is ended. ``causes``: name under which the event is recorded → its id.
    """
    moved = move_runs(
        new_states_of(moves, causes, using=using), event=said.name, actor=said.actor, now=now, using=using
    )
    ends: dict[str, list[TimelineRun]] = defaultdict(list)
    for move, run in zip(moves, moved, strict=True):
        if run.state in table_of(move.definition).ends:
            ends[run.state].append(run)
    cancelled = []
    for state, runs in sorted(ends.items()):
        reason = Reason(ReasonCode.EXIT, state, said.actor)
        cancelled += end_runs(runs, RunEnd.EXIT, reason=reason, now=now, using=using)
    return moved, Ended([run for runs in ends.values() for run in runs], cancelled)


def new_states_of(moves: Iterable[Moving], causes: Mapping[EntityRef, UUID], *, using: str) -> list[NewState]:
    """The states to write for moves that were decided. The database is told of pairs of states that it does not know yet."""
    pairs: dict[str, set[tuple[str, str]]] = defaultdict(set)
    found = []
    for move in moves:
        pairs[move.definition.name].add((move.run.state, move.target))
        back = table_of(move.definition).lasting(move.run.state, move.run.back)
        found.append(NewState(run=move.run, target=move.target, back=back, cause_id=causes.get(move.subject)))
    see_pairs({name: frozenset(some) for name, some in pairs.items()}, using=using)
    return found
