"""Emit: record a domain event, which ends runs, moves runs of machines, and starts runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.clocks import is_told, story_now
from timeline.definition import Definition
from timeline.exceptions import InvalidInput
from timeline.features.machines.moves import ANY, Wish, check_wish, lock_ahead
from timeline.features.waits.wake import note, wake
from timeline.hooks import around, asked_for, hooks
from timeline.models import EntityRef, Event, TimelineRun, ref_of
from timeline.operations.record_event import (
    EventFields,
    Recorded,
    Subject,
    event_columns,
    known_events,
    lock_subject_now,
    lock_subjects,
    record,
    refuse_ours,
    starters_of,
    subjects_of,
    touches_runs,
)
from timeline.operations.sets import Portion, Tally, check_spread, in_portions, rounds
from timeline.operations.unknown_events import mind_unknown
from timeline.payloads import check_data, check_is_dict, check_text
from timeline.registry import registry
from timeline.store.insert import as_stored, new_row
from timeline.store.signal_dispatch import may_hosts_write
from timeline.store.transactions import atomic, in_transaction
from timeline.timing import check_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """
    What an event did to runs. ``recorded``: False if it was there already (same name, entity, key and payload); then it did
    nothing. ``ended`` has machines that it moved to an end, too; ``moved`` has runs as they are after it.
    """

    event: Event
    recorded: bool
    started: tuple[TimelineRun, ...] = ()
    ended: tuple[TimelineRun, ...] = ()
    moved: tuple[TimelineRun, ...] = ()


def emit(
    *,
    name: str,
    entity: Model | EntityRef | None,
    key: str,
    payload: dict[str, Any],
    actor: str,
    occurred_at: datetime | None,
    machine: str = "",
    expect: str | None = None,
    visit: tuple[TimelineRun, int] | None = None,
    now: datetime | None = None,
    using: str,
) -> Emission:
    """
    Record an event in the caller's transaction; end the runs that it exits, move those of machines, start those it starts.

    Of a family of models (a parent and its children) any may be given: the event goes to the timelines of all of them, and is
    recorded under the topmost.

    Args:
        name: For example ``user.created``; 100 characters at most, no blanks.
        entity: The entity that it happened to; None: the system.
        key: Makes the event unique for its name and entity; empty: it is recorded each time. 200 characters at most.
        payload: A JSON object.
        actor: Who did it; empty for the system itself. 150 characters at most.
        occurred_at: When it happened (aware): runs it starts count from then. None: now.
        machine: Name of the machine that has to take the event; empty: any machine may.
        expect: The state in which the run of that machine has to be; None: any state that takes the event. If only one machine
            about the entity has the event, it need not be named.
        visit: A run of the named machine, and how often it has to have moved by now.

    Raises:
        KeyConflict: if the key was used with another payload.
        UnknownMachineEvent: if ``machine``, or with ``expect`` any machine about the entity, has no such event; no SQL then.
        MoveNotAllowed: if the run of a machine is in a state that does not take the event, or in another than expected, or has
            ended: no machine moves then. An event with a key that was recorded before is not refused.
        NoOpenRun: if the machine that is meant has no run for the entity.
        UnknownEvent: if no timeline knows the event, and ``TIMELINE["STRICT_EVENTS"]`` is on.
        InvalidInput, WrongEntity, NotPlainJSON, PayloadTooLarge, NaiveDatetime, DateOutOfRange: nothing is written then.
    """
    _check(name, key, payload, actor)
    happened = None if occurred_at is None else check_time("occurred_at", occurred_at)
    ref = ref_of(entity)
    wish = ANY
    if machine or expect is not None or registry.is_typed(name):
        wish = check_wish(name, [ref.label], payload, machine=machine, expect=expect)
    if visit is not None:
        wish = replace(wish, run_key=visit[0].key, visit=(visit[0].pk, visit[1]))
    starters = starters_of(name)
    if ref.label not in starters:
        mind_unknown(name, [ref.label])
    with around(hooks().emits, name), in_transaction(using):
        subject = subjects_of([ref], started=starters, using=using)[ref]
        read = _reads(starters, [subject])
        at = _locked(name, subject, wish, read=read, now=now, using=using)
        said = EventFields(name, key, payload, actor, occurred_at=happened or at, recorded_at=at)
        done = record(said, {subject.ref: subject}, wish=wish, using=using)
        if done.again:
            return Emission(event=known_events(said, done.again, using)[subject.ref], recorded=False)
        if done.awaited:
            wake(said.name, said.key, done.awaited, now=at, using=using)
            note(said.name, said.key, done.awaited, using=using)
    event = as_stored(new_row(Event, event_columns(said, subject.ref, done.new[subject.ref])), using=using)
    started = [beginning.run(using=using) for beginning in done.begun]
    for run in started:
        run.started_by = event
    for tell in asked_for(hooks().instances, shown := (*started, *done.moved)):
        tell(entity, shown)
    ended, moved = tuple(done.ended.runs), tuple(done.moved)
    return Emission(event=event, recorded=True, started=tuple(started), ended=ended, moved=moved)


def emit_many(
    *,
    name: str,
    batches: Iterable[Portion],
    key: str,
    payload: dict[str, Any],
    actor: str,
    occurred_at: datetime | None,
    machine: str = "",
    expect: str | None = None,
    spread: timedelta | None = None,
    clock: Callable[[str], datetime],
) -> Tally:
    """
    Record an event for each of many entities, with the same result as ``emit`` for each: one transaction and a fixed number of
    statements for each batch.

    Args:
        name, key, payload, actor, occurred_at, machine, expect: As for ``emit``.
        batches: The entities.
        spread: If given, the first tasks of the runs that start become due up to so much later, each run's at a moment of its
            own; 30 days at most.
        clock: Gives the story time of a database. It is asked once for each batch, when the entities are locked.

    Returns:
        What was done; ``again`` counts entities for which the same event was recorded before.

    Raises:
        As ``emit``: nothing of the batch with the entity at fault is written then, and those before it stand.
    """
    _check(name, key, payload, actor)
    check_spread(spread)
    if machine:  # What can be seen of it before any entity is read.
        check_wish(name, [registry.timeline(machine).label], payload, machine=machine, expect=expect)
    happened = None if occurred_at is None else check_time("occurred_at", occurred_at)
    tally = Tally()
    for batch in batches:
        now, starters = None, starters_of(name)
        wish = check_wish(name, (ref.label for ref in batch.refs), payload, machine=machine, expect=expect)
        mind_unknown(name, (ref.label for ref in batch.refs))
        with around(hooks().emits, name), atomic(using=batch.using):
            subjects = subjects_of(batch.refs, started=starters, using=batch.using)
            known = {subject.ref: subject for subject in subjects.values()}
            for part in rounds(subjects[ref].ref for ref in batch.refs):
                some = [known[ref] for ref in part]
                locked = lock_subjects(some, gone=batch.gone, read=_reads(starters, some), using=batch.using)
                now = now or clock(batch.using)
                said = EventFields(name, key, payload, actor, occurred_at=happened or now, recorded_at=now)
                again: list[Subject] = []
                awaited: list[EntityRef] = []
                work = partial(_record_some, said, again, awaited, wish, spread, batch.using)
                whole = touches_runs(name, (known for subject in some for known in subject.names))
                whole = whole or bool(asked_for(hooks().heard, (name,)))
                whole = whole or any(one.asks_of_holidays for several in starters.values() for one in several)
                tally += in_portions(work, locked, whole=whole, using=batch.using)
                wake(name, key, awaited, now=now, using=batch.using)
                note(name, key, awaited, using=batch.using)
                known_events(said, again, batch.using)
    return tally


def emit_among(
    said: EventFields, refs: Iterable[EntityRef], *, wish: Wish, later: Collection[UUID] = (), using: str
) -> Recorded:
    """
    Record an event that was checked, for locked entities; those that do not exist any more are left out. ``later``: runs that
    the caller reconciles at its end. If a machine does not take the event, ``MoveNotAllowed`` or ``NoOpenRun`` is raised, and
    nothing is written.
    """
    starters = starters_of(said.name)
    subjects = list(subjects_of(refs, started=starters, using=using).values())
    with around(hooks().emits, said.name):
        locked = lock_subjects(subjects, gone=True, read=_reads(starters, subjects), using=using)
        done = record(said, locked, wish=wish, later=later, using=using)
        wake(said.name, said.key, done.awaited, now=said.recorded_at, using=using)
        note(said.name, said.key, done.awaited, using=using)
    return done


def _locked(name: str, subject: Subject, wish: Wish, *, read: bool, now: datetime | None, using: str) -> datetime:
    """Lock the entity, and the runs that the event moves if this is possible in the same trip. Gives story time."""
    locked_at = None
    if registry.machines(name) and not read and not may_hosts_write():
        locked_at = lock_ahead(name, subject, wish, using=using)
    if locked_at is None:
        return lock_subject_now(subject, read=read, now=now, using=using)
    return now or (story_now(using) if is_told() else locked_at)


def _record_some(
    said: EventFields,
    again: list[Subject],
    awaited: list[EntityRef],
    wish: Wish,
    spread: timedelta | None,
    using: str,
    subjects: Mapping[EntityRef, Subject],
) -> Tally:
    recorded = record(said, subjects, wish=wish, spread=spread, using=using)
    again += recorded.again
    awaited += recorded.awaited
    return recorded.tally


def _reads(starters: Mapping[str, Sequence[Definition]], subjects: Iterable[Subject]) -> bool:
    """Whether a timeline that the event starts reads fields of its entity."""
    labels = {name.label for subject in subjects for name in subject.sought}
    return any(known.followed_fields for label in labels for known in starters.get(label, ()))


def _check(name: str, key: str, payload: dict[str, Any], actor: str) -> None:
    check_text("name", name, 100, least=1)
    if re.search(r"\s", name):
        raise InvalidInput("name", _("%(name)r has blanks."), _("Give text like 'user.created'."), name=name)
    refuse_ours(name, field="name")
    check_text("key", key, 200)
    check_text("actor", actor, 150)
    check_is_dict("payload", payload)
    if payload:
        check_data("payload", payload)
