"""Recording: write an event of entities that are locked, with all it does to runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.dialects import dialect_of
from timeline.exceptions import KeyConflict
from timeline.ids import uuid7s
from timeline.models import EntityRef, Event, TimelineRun
from timeline.models.entities import by_label
from timeline.operations._event_fields import EventFields
from timeline.operations._subjects import Subject
from timeline.operations.leaving import Ended, exit_runs
from timeline.operations.machines import ANY, Wish, decide_moves, is_moving, write_moves
from timeline.operations.machines_at_once import are_plain, write_at_once
from timeline.operations.reconciling_moved import reconcile_moved
from timeline.operations.sets import Tally
from timeline.operations.waking import is_awaited
from timeline.payloads import same_json
from timeline.registry import registry
from timeline.store.beginning import FEW, Beginning, begin_runs, constantly, needs_savepoint, plan_runs
from timeline.store.inserting import Insertion, columns_of
from timeline.store.isolating import atomic
from timeline.store.telling import may_hosts_write


@dataclass(frozen=True, slots=True)
class Recorded:
    """
    What became of the events of some entities: columns of those that are new, or recorded before; runs begun, ended and moved;
    those of which tasks wait for something.
    """

    new: dict[EntityRef, dict[str, Any]]
    again: list[Subject]
    begun: list[Beginning]
    ended: Ended
    awaited: frozenset[EntityRef] = frozenset()
    moved: Sequence[TimelineRun] = ()

    @property
    def tally(self) -> Tally:
        """In numbers."""
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
    Record an event for each of some entities that the caller has locked, end the runs it exits, move those of machines, start
    those it starts: of every model of their families.

    Where it was recorded before, see by ``known_events`` that it said the same.

    Args:
        said: The event.
        subjects: Whose, by what it is recorded under.
        wish: What the caller says of machines.
        spread: As for ``plan_runs``.
        later: Runs that the caller reconciles when it has written all that it has to.
        using: Database alias.

    Raises:
        KeyConflict: if it said something else, under another name of the entity.
        NaiveDatetime, DateOutOfRange: if a run that starts has no proper time; nothing is written then.
        InvalidInput: if the payload lacks what makes the key of a run; nothing is written then.
        MoveNotAllowed, NoOpenRun: if a machine does not take it; nothing is written then.
    """
    now = said.recorded_at
    new = _without_those_known(said, subjects, using)
    moves = decide_moves(said, new, wish, ahead=not later and not may_hosts_write(), using=using)
    words = said._asdict()
    events = {
        ref: {"id": event_id, "entity_label": ref.label, "entity_id": ref.id, **words}
        for ref, event_id in zip(new, uuid7s(len(new)), strict=True)
    }
    entities = {name: held for subject in new.values() for name, held in subject.there.items()}
    starters = starters_of(said.name)
    labels = {ref.label for ref in entities}
    keys = {known.name: known.run_key(said.payload) for label in labels for known in starters.get(label, ())}
    beginnings = plan_runs(
        {label: starters.get(label, ()) for label in by_label(entities)},
        entities,
        causes={name: events[ref]["id"] for ref, subject in new.items() for name in subject.there},
        keys=keys,
        event=said.name,
        actor=said.actor,
        begins=constantly(said.occurred_at),
        spread=spread,
        now=now,
    )
    names = [name for subject in new.values() for name in subject.names]
    apart = bool(moves) or len(beginnings) > FEW or _ends_runs(said.name, names)
    with atomic(using=using, savepoint=needs_savepoint(beginnings)):
        ended, moved, event = Ended([], []), list[TimelineRun](), None
        plain = are_plain(moves) and not _ends_runs(said.name, names)
        done = write_at_once(moves, said, events[moves[0].subject], entities, now=now, using=using) if plain else None
        if done is not None:
            recorded, met, moved = done.recorded, done.met, done.runs
            beginnings = [known for known in beginnings if known.columns["started_by_id"] in recorded]
        else:
            event = Insertion(
                Event, columns_of(list(events.values())), taken=bool(said.key), asks=is_awaited(using), using=using
            )
        if apart and event is not None:
            recorded = event.send().inserted()
            beginnings = [known for known in beginnings if known.columns["started_by_id"] in recorded]
            names = [name for ref, subject in new.items() if events[ref]["id"] in recorded for name in subject.names]
            ended = exit_runs(said.name, names, actor=said.actor, now=now, using=using)
            causes = {ref: columns["id"] for ref, columns in events.items() if columns["id"] in recorded}
            moves = [move for move in moves if move.subject in causes]
            before = {move.run.pk: move.run.state for move in moves}
            moved, at_end = write_moves(moves, said, causes, now=now, using=using)
            ended = Ended(ended.runs + at_end.runs, ended.tasks + at_end.tasks)
            reconciled = (run for run in moved if run.pk not in later)
            rows = {move.run.pk: move.rows for move in moves if move.rows is not None}
            reconcile_moved(reconciled, before, entities, rows=rows, now=now, using=using)
        begun = begin_runs(beginnings, first=None if apart else event, now=now, using=using)
    if event is not None:
        recorded, met = event.inserted(), event.met
    written = {ref: columns for ref, columns in events.items() if columns["id"] in recorded}
    again = [subject for ref, subject in subjects.items() if ref not in written]
    awaited = frozenset(ref for ref, columns in written.items() if columns["id"] in met)
    return Recorded(written, again, begun, ended, awaited, moved)


def _without_those_known(
    said: EventFields, subjects: Mapping[EntityRef, Subject], using: str
) -> Mapping[EntityRef, Subject]:
    """
    Those of whom the event may be new. Under one name the database tells; under several, only who has the lock can look. And
    before a machine refuses an event, it has to be known whether it was recorded.
    """
    if not said.key:
        return subjects
    moves = is_moving(said.name, (name for subject in subjects.values() for name in subject.names))
    several = [subject for subject in subjects.values() if moves or len(subject.names) > 1]
    if not several:
        return subjects
    before = known_events(said, several, using)
    return {ref: subject for ref, subject in subjects.items() if ref not in before}


def starters_of(event: str) -> dict[str, list[Definition]]:
    """Label → timelines that the event starts for entities of that kind."""
    found: dict[str, list[Definition]] = defaultdict(list)
    for definition in registry if get_settings().AUTOSTART else ():
        if event in definition.starts_on:
            found[definition.label].append(definition)
    return found


def _ends_runs(event: str, refs: Iterable[EntityRef]) -> bool:
    """Whether the event ends runs."""
    return any(registry.ended_by(event, label) for label in {ref.label for ref in refs})


def touches_runs(event: str, refs: Iterable[EntityRef]) -> bool:
    """Whether the event ends or moves runs, which are locked in one order only if they are locked together."""
    refs = list(refs)
    return is_moving(event, refs) or _ends_runs(event, refs)


def known_events(said: EventFields, subjects: Iterable[Subject], using: str) -> dict[EntityRef, Event]:
    """
    Find the events recorded before with the same key, under whichever name.

    Raises:
        KeyConflict: if one has another payload.
    """
    refs = {name: subject.ref for subject in subjects for name in subject.names}
    if not refs:
        return {}
    dialect = dialect_of(using)
    parameters = {**dialect.entities_of(refs), "name": said.name, "key": said.key}
    found: dict[EntityRef, Event] = {}
    for event in Event.objects.using(using).raw(dialect.sql("known_events"), parameters):
        ref = refs[event.entity_ref]
        if ref not in found or same_json(event.payload, said.payload):
            found[ref] = event
    for event in found.values():
        if not same_json(event.payload, said.payload):
            which = format_lazy(_("event '{name}' of {entity}"), name=said.name, entity=event.entity_ref)
            raise KeyConflict(which, said.key, pgettext_lazy("timeline", "payload"))
    return found
