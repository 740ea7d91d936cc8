"""Emit: record a domain event; it ends runs, and it starts runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.db.models import Model
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.dialects import dialect_of
from timeline.exceptions import InvalidInput, KeyConflict
from timeline.ids import uuid7s
from timeline.models import EntityRef, Event, TimelineRun, ref_of
from timeline.models.entities import by_label
from timeline.operations._knowing import mind_unknown
from timeline.operations._subjects import Subject, lock_subject_now, lock_subjects, subjects_of
from timeline.operations.leaving import Ended, exit_runs
from timeline.operations.sets import Portion, Tally, check_spread, in_portions, rounds
from timeline.operations.waking import AWAITED, wake
from timeline.payloads import check_json, check_text, same_json
from timeline.registry import registry
from timeline.store.beginning import FEW, Beginning, begin_runs, constantly, needs_savepoint, plan_runs
from timeline.store.inserting import Insertion, as_stored, columns_of
from timeline.store.isolating import atomic
from timeline.store.locking import in_transaction
from timeline.timing import check_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """
    What an event did.

    Args:
        event: The row.
        recorded: False if it was there already (same name, entity, key and payload); nothing was done then.
        started: Runs it started.
        ended: Runs it ended.
    """

    event: Event
    recorded: bool
    started: tuple[TimelineRun, ...] = ()
    ended: tuple[TimelineRun, ...] = ()


class EventFields(NamedTuple):
    """What an event says, whosever it is; its fields are columns."""

    name: str
    key: str
    payload: dict[str, Any]
    actor: str
    occurred_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Recorded:
    """
    What became of the events of some entities: columns of those that are new, or recorded before; runs begun and ended; those
    of which tasks wait for something.
    """

    new: dict[EntityRef, dict[str, Any]]
    again: list[Subject]
    begun: list[Beginning]
    ended: Ended
    awaited: frozenset[EntityRef] = frozenset()

    @property
    def tally(self) -> Tally:
        """In numbers."""
        return Tally(
            recorded=len(self.new),
            again=len(self.again),
            started=len(self.begun),
            ended=len(self.ended.runs),
            tasks=sum(len(beginning.planned) for beginning in self.begun),
            cancelled=len(self.ended.tasks),
        )


def emit(
    *,
    name: str,
    entity: Model | EntityRef | None,
    key: str,
    payload: dict[str, Any],
    actor: str,
    occurred_at: datetime | None,
    now: datetime | None = None,
    using: str,
) -> Emission:
    """
    Record an event in the caller's transaction, end the runs it exits, then start the runs it starts.

    It is one event of the entity, by whichever model of its family that is given, and goes to the timelines of all of them. It
    is recorded under the topmost of these models.

    Args:
        name: For example ``user.created``; 100 characters at most, no blanks.
        entity: Whose event; None for the system's.
        key: Makes it unique for this name and entity; empty: recorded each time. 200 characters at most.
        payload: Plain JSON, an object.
        actor: Who did it; empty for the system itself. 150 characters at most.
        occurred_at: When it happened (aware): runs it starts count from then. None: now.
        now: Story time; None: as it is when the entity is locked, and read in the same trip.
        using: Database alias of the entity.

    Raises:
        KeyConflict: if the key was used with another payload.
        UnknownEvent: if no timeline knows it, and ``TIMELINE["STRICT_EVENTS"]`` is on.
        InvalidInput, WrongEntity, NotPlainJSON, PayloadTooLarge, NaiveDatetime, DateOutOfRange: nothing is written then.
    """
    _check(name, key, payload, actor)
    happened = None if occurred_at is None else check_time("occurred_at", occurred_at)
    ref = ref_of(entity)
    mind_unknown(name, [ref.label])
    with in_transaction(using):
        starters = _starters(name)
        subject = subjects_of([ref], started=starters, using=using)[ref]
        at = lock_subject_now(subject, read=_reads(starters, [subject]), now=now, using=using)
        said = EventFields(name, key, payload, actor, occurred_at=happened or at, recorded_at=at)
        done = record(said, {subject.ref: subject}, using=using)
        if done.again:
            return Emission(event=_known(said, done.again, using)[subject.ref], recorded=False)
        wake(said.name, said.key, done.awaited, now=at, using=using)
    event = as_stored(Event(**done.new[subject.ref]), using=using)
    started = [beginning.run(using=using) for beginning in done.begun]
    for run in started:
        run.started_by = event
    return Emission(event=event, recorded=True, started=tuple(started), ended=tuple(done.ended.runs))


def emit_many(
    *,
    name: str,
    batches: Iterable[Portion],
    key: str,
    payload: dict[str, Any],
    actor: str,
    occurred_at: datetime | None,
    spread: timedelta | None = None,
    clock: Callable[[str], datetime],
) -> Tally:
    """
    Record an event of each of many entities as ``emit`` would one by one: a transaction a batch, a fixed number of statements.

    Args:
        name, key, payload, actor, occurred_at: As for ``emit``, of each event.
        batches: The entities.
        spread: Within which the first tasks of the runs it starts become due after their time, each run's at a moment of its
            own; 30 days at most. None: at their time.
        clock: Tells the story time of a database; read once a batch, when its entities are locked.

    Returns:
        What was done; ``again`` counts those of which the same event had been recorded.

    Raises:
        As ``emit``: nothing of the batch with the entity at fault is written then, and those before it stand.
    """
    _check(name, key, payload, actor)
    check_spread(spread)
    happened = None if occurred_at is None else check_time("occurred_at", occurred_at)
    tally = Tally()
    for batch in batches:
        now, starters = None, _starters(name)
        mind_unknown(name, (ref.label for ref in batch.refs))
        with atomic(using=batch.using):
            subjects = subjects_of(batch.refs, started=starters, using=batch.using)
            known = {subject.ref: subject for subject in subjects.values()}
            for part in rounds(subjects[ref].ref for ref in batch.refs):
                some = [known[ref] for ref in part]
                locked = lock_subjects(some, gone=batch.gone, read=_reads(starters, some), using=batch.using)
                now = now or clock(batch.using)
                said = EventFields(name, key, payload, actor, occurred_at=happened or now, recorded_at=now)
                again: list[Subject] = []
                awaited: list[EntityRef] = []
                work = partial(_record_some, said, again, awaited, spread, batch.using)
                whole = _ends_runs(name, (known for subject in some for known in subject.names))
                tally += in_portions(work, locked, whole=whole, using=batch.using)
                wake(name, key, awaited, now=now, using=batch.using)
                _known(said, again, batch.using)
    return tally


def record(
    said: EventFields, subjects: Mapping[EntityRef, Subject], *, spread: timedelta | None = None, using: str
) -> Recorded:
    """
    Record an event for each of some entities that the caller has locked, end the runs it exits, start those it starts: of
    every model of their families.

    Where it was recorded before, see by ``_known`` that it said the same.

    Raises:
        KeyConflict: if it said something else, under another name of the entity.
        NaiveDatetime, DateOutOfRange: if a run that starts has no proper time; nothing is written then.
        InvalidInput: if the payload lacks what makes the key of a run; nothing is written then.
    """
    now = said.recorded_at
    new = _without_those_known(said, subjects, using)
    words = said._asdict()
    events = {
        ref: {"id": event_id, "entity_label": ref.label, "entity_id": ref.id, **words}
        for ref, event_id in zip(new, uuid7s(len(new)), strict=True)
    }
    event = Insertion(Event, columns_of(list(events.values())), taken=bool(said.key), asks=AWAITED, using=using)
    entities = {name: held for subject in new.values() for name, held in subject.there.items()}
    starters = _starters(said.name)
    labels = {ref.label for ref in entities}
    keys = {known.name: known.run_key(said.payload) for label in labels for known in starters.get(label, ())}
    beginnings = plan_runs(
        {label: starters.get(label, ()) for label in by_label(entities)},
        entities,
        causes={name: events[ref]["id"] for ref, subject in new.items() for name in subject.there},
        keys=keys,
        begins=constantly(said.occurred_at),
        spread=spread,
        now=now,
    )
    names = [name for subject in new.values() for name in subject.names]
    with atomic(using=using, savepoint=needs_savepoint(beginnings)):
        ended = Ended([], [])
        if apart := len(beginnings) > FEW or _ends_runs(said.name, names):
            recorded = event.send().inserted()
            beginnings = [known for known in beginnings if known.columns["started_by_id"] in recorded]
            names = [name for ref, subject in new.items() if events[ref]["id"] in recorded for name in subject.names]
            ended = exit_runs(said.name, names, actor=said.actor, now=now, using=using)
        begun = begin_runs(beginnings, first=None if apart else event, now=now, using=using)
    recorded = event.inserted()
    written = {ref: columns for ref, columns in events.items() if columns["id"] in recorded}
    again = [subject for ref, subject in subjects.items() if ref not in written]
    awaited = frozenset(ref for ref, columns in written.items() if columns["id"] in event.met)
    return Recorded(written, again, begun, ended, awaited)


def _without_those_known(
    said: EventFields, subjects: Mapping[EntityRef, Subject], using: str
) -> Mapping[EntityRef, Subject]:
    """Those of whom the event may be new. Under one name the database tells; under several, only who has the lock can look."""
    several = [subject for subject in subjects.values() if len(subject.names) > 1] if said.key else []
    if not several:
        return subjects
    before = _known(said, several, using)
    return {ref: subject for ref, subject in subjects.items() if ref not in before}


def _record_some(
    said: EventFields,
    again: list[Subject],
    awaited: list[EntityRef],
    spread: timedelta | None,
    using: str,
    subjects: Mapping[EntityRef, Subject],
) -> Tally:
    recorded = record(said, subjects, spread=spread, using=using)
    again += recorded.again
    awaited += recorded.awaited
    return recorded.tally


def _starters(event: str) -> dict[str, list[Definition]]:
    """Label → timelines that the event starts for entities of that kind."""
    found: dict[str, list[Definition]] = defaultdict(list)
    for definition in registry if get_settings().AUTOSTART else ():
        if event in definition.starts_on:
            found[definition.label].append(definition)
    return found


def _reads(starters: Mapping[str, Sequence[Definition]], subjects: Iterable[Subject]) -> bool:
    """Whether a timeline that the event starts reads anything of its entity."""
    labels = {name.label for subject in subjects for name in subject.sought}
    return any(known.followed_fields for label in labels for known in starters.get(label, ()))


def _ends_runs(event: str, refs: Iterable[EntityRef]) -> bool:
    """Whether the event ends runs: in portions, runs and tasks would not be locked in one order."""
    return any(registry.ended_by(event, label) for label in {ref.label for ref in refs})


def _known(said: EventFields, subjects: Iterable[Subject], using: str) -> dict[EntityRef, Event]:
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


def _check(name: str, key: str, payload: dict[str, Any], actor: str) -> None:
    check_text("name", name, 100, least=1)
    if re.search(r"\s", name):
        raise InvalidInput("name", _("%(name)r has blanks."), _("Give text like 'user.created'."), name=name)
    check_text("key", key, 200)
    check_text("actor", actor, 150)
    if not isinstance(payload, dict):
        raise InvalidInput("payload", _("is a %(kind)s."), _("Give a dict."), kind=type(payload).__name__)
    check_json("payload", payload)
