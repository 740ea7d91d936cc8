"""Record an event (``EventFields``) for locked entities by all their names (``Subject``), and what follows for their runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connections
from django.db.models import Model
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.definition.names import ERASED
from timeline.dialects import dialect_of
from timeline.exceptions import InvalidInput, KeyConflict
from timeline.features.machines.moves import ANY, Moving, Wish, decide_moves, is_moving, write_moves
from timeline.features.machines.passages import act
from timeline.features.machines.quick_moves import are_many, are_plain, reconcile_moved, write_ahead, write_at_once
from timeline.hooks import asked_for, hooks
from timeline.ids import uuid7s
from timeline.models import EntityRef, Event, ScheduledTask, TimelineRun
from timeline.models.kin import Names, kin_of
from timeline.operations.leave import Ended, exit_runs
from timeline.operations.sets import Tally
from timeline.payloads import same_json
from timeline.registry import registry
from timeline.store.insert import Insertion, as_stored, new_row
from timeline.store.locks import lock_batch, lock_entity_now, missing
from timeline.store.returned_rows import rows_of
from timeline.store.run_insert import FEW, Beginning, begin_runs, constantly, needs_savepoint, plan_runs
from timeline.store.signal_dispatch import may_hosts_write
from timeline.store.transactions import atomic

_NOBODY: Final[Mapping[EntityRef, Model | None]] = {}


class EventFields(NamedTuple):
    """The contents of an event, without its entity; the fields are columns."""

    name: str
    key: str
    payload: dict[str, Any]
    actor: str
    occurred_at: datetime
    recorded_at: datetime


def refuse_ours(name: str, *, field: str) -> None:
    """
    Raise ``InvalidInput`` for an event name that only this package may write: such events are kept when an entity is erased.
    """
    if name == ERASED:
        raise InvalidInput(field, _("%(name)r is written where something is erased."), _("Call erase."), name=name)


@dataclass(slots=True, kw_only=True)
class Subject:
    """
    An entity, with all its names; it has to exist under ``given``.

    Args:
        sought: The names under which its rows are locked. It may not exist under some of them.
        there: The names under which it exists → the entity, or None if not read. Filled by locking.
        ahead: The runs that an event moves, with the tasks to plan from, if they were locked with the entity.
    """

    given: EntityRef
    names: Names
    sought: Names
    there: Mapping[EntityRef, Model | None] = field(default_factory=lambda: _NOBODY)
    ahead: list[tuple[TimelineRun, list[ScheduledTask]]] | None = None

    @property
    def ref(self) -> EntityRef:
        """The name under which its events are recorded."""
        return self.names[0]


def subjects_of(refs: Iterable[EntityRef], *, started: Collection[str], using: str) -> dict[EntityRef, Subject]:
    """
    Find the names of entities. ``started``: labels of models whose timelines may start; entities are locked under these, too.
    """
    return {
        ref: Subject(given=ref, names=names, sought=_sought(ref, names, started))
        for ref, names in kin_of(refs, using=using).items()
    }


def _sought(ref: EntityRef, names: Names, started: Collection[str]) -> Names:
    if names == (ref,):
        return names
    return tuple(name for name in names if name == ref or name.label in started) or (ref,)


def lock_subject_now(subject: Subject, *, read: bool, now: datetime | None, using: str) -> datetime:
    """Lock one subject, and tell story time as it is then. Errors as of ``lock_entity_now``."""
    if subject.sought == (subject.given,):
        subject.there, now = lock_entity_now(subject.given, read=read, now=now, using=using)
        return now
    lock_subjects([subject], read=read, using=using)
    return now or story_now(using)


def lock_subjects(
    subjects: Sequence[Subject], *, gone: bool = False, read: bool, using: str
) -> dict[EntityRef, Subject]:
    """
    Lock subjects as ``lock_batch`` does. Gives those that exist, in order, by the name under which their events are recorded.
    """
    refs = list(dict.fromkeys(name for subject in subjects for name in subject.sought))
    entities = lock_batch(refs, gone=True, read=read, using=using)
    found = {}
    for subject in subjects:
        if subject.given in entities:
            if subject.sought == (subject.given,):
                subject.there = {subject.given: entities[subject.given]}
            else:
                subject.there = {name: entities[name] for name in subject.sought if name in entities}
            found[subject.ref] = subject
        elif not gone:
            raise missing(subject.given, using)
    return found


@dataclass(frozen=True, slots=True)
class Recorded:
    """
    What was recorded: entity → id of its new event; entities that had it before; runs; entities for whose events a task waits.
    """

    new: dict[EntityRef, UUID]
    again: list[Subject]
    begun: list[Beginning]
    ended: Ended
    awaited: frozenset[EntityRef] = frozenset()
    moved: Sequence[TimelineRun] = ()

    @property
    def tally(self) -> Tally:
        """How many of each."""
        return Tally(
            recorded=len(self.new),
            again=len(self.again),
            started=len(self.begun),
            ended=len(self.ended.runs),
            moved=len(self.moved),
            tasks=sum(len(beginning.planned) for beginning in self.begun),
            cancelled=len(self.ended.tasks),
        )


def record(
    said: EventFields,
    subjects: Mapping[EntityRef, Subject],
    *,
    wish: Wish = ANY,
    spread: timedelta | None = None,
    later: Collection[UUID] = (),
    using: str,
) -> Recorded:
    """
    Record an event for locked entities: end, move and start runs, for every model of their families. ``subjects`` are by the
    name under which it is recorded. If it was recorded before, ``known_events`` tells whether it was the same.

    Raises:
        KeyConflict: if it was recorded with another payload, under another name of the entity.
        NaiveDatetime, DateOutOfRange: if a run that starts has no usable times.
        InvalidInput: if the payload lacks a value for the key of a run.
        MoveNotAllowed, NoOpenRun: if a machine does not take it. In the last three cases, nothing is written.
    """
    now = said.recorded_at
    new = _without_those_known(said, subjects, using) if said.key else subjects
    moves = _moves(said, new, wish, later, using) if registry.machines(said.name) else []
    events = dict(zip(new, uuid7s(len(new)), strict=True))
    entities = {name: held for subject in new.values() for name, held in subject.there.items()}
    starters = starters_of(said.name)
    labels = {ref.label for ref in entities}
    keyed = [known for label in labels for known in starters.get(label, ()) if known.key]
    beginnings = plan_runs(
        {label: starters.get(label, ()) for label in labels},
        entities,
        causes={name: events[ref] for ref, subject in new.items() for name in subject.there},
        keys={known.name: known.run_key(said.payload) for known in keyed},
        event=said.name,
        actor=said.actor,
        begins=constantly(said.occurred_at),
        spread=spread,
        now=now,
    )
    wanted = _Wanted(said, new, events, entities, beginnings, moves, later, using)
    acts = any(move.taken is not None and move.taken.edge.do for move in moves)
    with atomic(using=using, savepoint=acts or needs_savepoint(beginnings)):
        done = wanted.written()
        if acts:
            act(moves, done.moved)
    written = {ref: event_id for ref, event_id in events.items() if event_id in done.recorded}
    for hear in asked_for(hooks().heard, (said.name,)) if written else ():
        hear(said, written, {ref: subjects[ref].names for ref in written}, using=using)
    for tell in hooks().recorded if written else ():
        tell(list(written.values()), using=using)
    again = [subject for ref, subject in subjects.items() if ref not in written]
    awaited = frozenset(ref for ref, event_id in written.items() if event_id in done.met)
    return Recorded(written, again, done.begun, done.ended, awaited, done.moved)


class _Done(NamedTuple):
    """What was written: ids of new events, and of those that a task waits for; runs that began, ended and moved."""

    recorded: Collection[UUID]
    met: Collection[UUID]
    begun: list[Beginning]
    ended: Ended
    moved: Sequence[TimelineRun]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """
    What follows from an event, decided before anything is written; the methods write it. ``new``: entities for which it may be
    new. ``entities``: by each of their names; None: not read. ``later``: runs that are not reconciled here.
    """

    said: EventFields
    new: Mapping[EntityRef, Subject]
    events: dict[EntityRef, UUID]
    entities: dict[EntityRef, Model | None]
    beginnings: list[Beginning]
    moves: list[Moving]
    later: Collection[UUID]
    using: str

    @property
    def ends_runs(self) -> bool:
        return _ends_runs(self.said.name, (name for subject in self.new.values() for name in subject.names))

    @property
    def takes_turns(self) -> bool:
        """Whether the event is written before its runs: if runs end or move, or if many begin."""
        return bool(self.moves) or len(self.beginnings) > FEW or self.ends_runs

    def written(self) -> _Done:
        """Write everything, in as few trips as possible."""
        done = (self.at_once() or self.ahead()) if self.moves else None
        return done or (self.in_turn() if self.takes_turns else self.with_runs())

    def at_once(self) -> _Done | None:
        """Write the event with its moves in one trip; None: this is not possible, and nothing was written."""
        if not are_plain(self.moves) or self.ends_runs:
            return None
        ref, now = self.moves[0].subject, self.said.recorded_at
        event = event_columns(self.said, ref, self.events[ref])
        done = write_at_once(self.moves, self.said, event, self.entities, now=now, using=self.using)
        if done is None:
            return None
        return _Done(done.recorded, done.met, self._begin(done.recorded), Ended([], []), done.runs)

    def ahead(self) -> _Done | None:
        """Write the event and many moves, and plan their tasks meanwhile; None: not possible, and nothing was written."""
        if not are_many(self.moves, self.entities, using=self.using) or self.ends_runs:
            return None
        event, now, using = self._insertion(), self.said.recorded_at, self.using
        moved = write_ahead(
            self.moves, self.said, event, self.events, self.entities, later=self.later, now=now, using=using
        )
        recorded = event.inserted()
        return _Done(recorded, event.met, self._begin(recorded), Ended([], []), moved)

    def in_turn(self) -> _Done:
        """Write the event, then end and move runs, then begin others."""
        said, now, using = self.said, self.said.recorded_at, self.using
        event = self._insertion()
        recorded = event.send().inserted()
        causes = {ref: event_id for ref, event_id in self.events.items() if event_id in recorded}
        names = [name for ref, subject in self.new.items() if ref in causes for name in subject.names]
        ended = exit_runs(said.name, names, actor=said.actor, now=now, using=using)
        moves = [move for move in self.moves if move.subject in causes]
        before = {move.run.pk: move.run.state for move in moves}
        moved, at_end = write_moves(moves, said, causes, now=now, using=using)
        reconciled = (run for run in moved if run.pk not in self.later)
        rows = {move.run.pk: move.rows for move in moves if move.rows is not None}
        reconcile_moved(reconciled, before, self.entities, rows=rows, now=now, using=using)
        ended = Ended(ended.runs + at_end.runs, ended.tasks + at_end.tasks)
        begun = self._begin(recorded)  # Sent before anybody waits for what the event gave.
        return _Done(recorded, event.met, begun, ended, moved)

    def with_runs(self) -> _Done:
        """Write the event and the runs that it starts, together."""
        event = self._insertion()
        begun = begin_runs(self.beginnings, first=event, now=self.said.recorded_at, using=self.using)
        return _Done(event.inserted(), event.met, begun, Ended([], []), [])

    def _insertion(self) -> Insertion:
        refs, using = list(self.events), self.using
        columns: dict[str, list[Any]] = {
            "id": list(self.events.values()),
            "entity_label": [ref.label for ref in refs],
            "entity_id": [ref.id for ref in refs],
            **{name: [value] * len(refs) for name, value in self.said._asdict().items()},
        }
        # Whether anybody waits for an event of the entity is asked in the statement that begins when the entity is locked. So
        # it costs next to nothing where nobody waits.
        dialect = dialect_of(using)
        verb = "is_awaited" if dialect.has_trigger_functions and len(refs) <= FEW else "are_awaited"
        return Insertion(Event, columns, taken=bool(self.said.key), asks=dialect.sql(verb), using=using)

    def _begin(self, recorded: Collection[UUID]) -> list[Beginning]:
        """Begin the runs of events that were new."""
        if not self.beginnings:
            return []
        found = [known for known in self.beginnings if known.started_by_id in recorded]
        return begin_runs(found, first=None, now=self.said.recorded_at, using=self.using)


def event_columns(said: EventFields, ref: EntityRef, event_id: UUID) -> dict[str, Any]:
    """The row of an event."""
    return {"id": event_id, "entity_label": ref.label, "entity_id": ref.id, **said._asdict()}


def _moves(
    said: EventFields, new: Mapping[EntityRef, Subject], wish: Wish, later: Collection[UUID], using: str
) -> list[Moving]:
    """The moves of the event. Their tasks are read in the same trip, if nobody else reconciles them or writes in between."""
    return decide_moves(said, new, wish, ahead=not later and not may_hosts_write(), using=using)


def _without_those_known(
    said: EventFields, subjects: Mapping[EntityRef, Subject], using: str
) -> Mapping[EntityRef, Subject]:
    """
    The entities for which an event with a key may be new. A unique index tells this later for an entity with one name. It is
    looked up here if there are several, or if a machine might refuse the event: one recorded before is not refused.
    """
    moves = is_moving(said.name, (name for subject in subjects.values() for name in subject.names))
    several = [subject for subject in subjects.values() if moves or len(subject.names) > 1]
    if not several:
        return subjects
    before = known_events(said, several, using)
    return {ref: subject for ref, subject in subjects.items() if ref not in before}


def starters_of(event: str) -> dict[str, list[Definition]]:
    """Label of a model → the timelines that the event starts for its entities."""
    found: dict[str, list[Definition]] = defaultdict(list)
    for definition in registry if get_settings().AUTOSTART else ():
        if event in definition.starts_on:
            found[definition.label].append(definition)
    return found


def _ends_runs(event: str, refs: Iterable[EntityRef]) -> bool:
    """Whether the event ends runs."""
    return any(registry.ended_by(event, label) for label in {ref.label for ref in refs})


def touches_runs(event: str, refs: Iterable[EntityRef]) -> bool:
    """Whether the event ends or moves runs. These have to be locked together, so that their locks are taken in one order."""
    refs = list(refs)
    return is_moving(event, refs) or _ends_runs(event, refs)


def known_events(said: EventFields, subjects: Iterable[Subject], using: str) -> dict[EntityRef, Event]:
    """
    Events recorded before with this key, under any name of the entities. Raises ``KeyConflict`` if one has another payload.
    """
    refs = {name: subject.ref for subject in subjects for name in subject.names}
    if not refs:
        return {}
    dialect = dialect_of(using)
    parameters = {**dialect.entities_of(refs), "name": said.name, "key": said.key}
    with connections[using].cursor() as cursor:  # Not by ``raw``, as it may be sent ahead: see ``pipelining``.
        cursor.execute(dialect.sql("known_events"), parameters)
        rows = rows_of(cursor, connections[using], model=Event).values()
    found: dict[EntityRef, Event] = {}
    for event in (as_stored(new_row(Event, row), using=using) for row in rows):
        ref = refs[event.entity_ref]
        if ref not in found or same_json(event.payload, said.payload):
            found[ref] = event
    for event in found.values():
        if not same_json(event.payload, said.payload):
            which = format_lazy(_("event '{name}' of {entity}"), name=said.name, entity=event.entity_ref)
            raise KeyConflict(which, said.key, pgettext_lazy("timeline", "payload"))
    return found
