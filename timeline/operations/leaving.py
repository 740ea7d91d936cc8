"""Leave: end runs before they are finished, and cancel their open tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import Model

from timeline import runs
from timeline.dialects import dialect_of
from timeline.exceptions import NoOpenRun
from timeline.lifecycle import Reason, ReasonCode, RunEnd, Trigger
from timeline.models import EntityRef, ScheduledTask, TimelineRun, ref_of
from timeline.models.entities import by_label
from timeline.operations._calling_off import call_off
from timeline.operations._succeeding import succeed
from timeline.payloads import check_is_text, check_text
from timeline.registry import registry
from timeline.store.isolating import atomic
from timeline.store.locking import in_transaction, lock_entity_now
from timeline.store.writing import MAX_REASON, Write, apply


def leave(
    *,
    timeline: str,
    entity: Model | EntityRef | None,
    key: str,
    reason: str,
    actor: str,
    now: datetime | None = None,
    using: str,
) -> TimelineRun:
    """
    End the open run of an entity by hand.

    Args:
        timeline: Its name.
        entity: The entity of the run; None for a system timeline.
        key: The key of the run; empty unless it was started with one.
        reason: Shown on the run and on each task that is cancelled.
        actor: Who decided; empty for the system itself.
        now: Story time; None: it is read in the same trip in which the entity is locked.
        using: Database alias of the entity.

    Returns:
        The run, ended.

    Raises:
        InvalidInput: if the reason is empty or longer than 200 characters, or ``key`` or ``actor`` is no text for its column.
        UnknownTimeline: if there is no timeline of this name.
        NoOpenRun: if there is no open run.
        WrongEntity: if the entity is not in this database.
    """
    check_text("reason", reason, MAX_REASON, least=1)
    check_text("key", key, runs.MAX_KEY)
    check_is_text("actor", actor)
    ref = ref_of(entity, registry.timeline(timeline).label)
    with in_transaction(using):
        _locked, now = lock_entity_now(ref, now=now, using=using)
        why = Reason(ReasonCode.EXIT, reason, actor)
        ended = end_open_runs([timeline], [ref], RunEnd.LEFT, key=key, reason=why, now=now, using=using)
    if not ended.runs:
        raise NoOpenRun(timeline, str(ref), key)
    return ended.runs[0]


class Ended(NamedTuple):
    """Runs that were ended, and the tasks cancelled with them."""

    runs: list[TimelineRun]
    tasks: list[ScheduledTask]


def exit_runs(event: str, refs: Iterable[EntityRef], *, actor: str, now: datetime, using: str) -> Ended:
    """
    End the open runs for which an event is an exit, for entities that the caller has locked.

    Args:
        event: The name of the event.
        refs: The entities that it happened to.
        actor: Who did it.
        now: Story time.
        using: Database alias.
    """
    ended = Ended([], [])
    for label, several in by_label(refs).items():
        for exit_name, timelines in _exits(event, label).items():
            reason = Reason(ReasonCode.EXIT, exit_name, actor)
            some = end_open_runs(timelines, several, RunEnd.EXIT, reason=reason, now=now, using=using)
            ended = Ended(ended.runs + some.runs, ended.tasks + some.tasks)
    return ended


def _exits(event: str, label: str) -> dict[str, list[str]]:
    """Name of an exit → names of the timelines that have it."""
    exits: dict[str, list[str]] = defaultdict(list)
    for definition in registry.ended_by(event, label):
        exits[definition.exits[event]].append(definition.name)
    return exits


def end_open_runs(
    timelines: Sequence[str],
    refs: Sequence[EntityRef],
    how: RunEnd,
    *,
    key: str | None = None,
    reason: Reason,
    now: datetime,
    using: str,
) -> Ended:
    """
    End the open runs of entities of one kind, which the caller has locked, and cancel their open tasks.

    Args:
        timelines: Names of timelines.
        refs: Entities with the same label.
        how: How the runs end.
        key: The key of the runs; None: any key.
        reason, now, using: As for ``end_runs``.
    """
    with atomic(using=using, savepoint=False):
        ended = runs.end_open(timelines, refs, how, reason.text, key=key, now=now, using=using)
        cancelled = _cancel_those_of(ended, reason=reason, now=now, using=using)
        succeed(ended, now=now, using=using)
    return Ended(ended, cancelled)


def end_runs(
    those: Sequence[TimelineRun], how: RunEnd, *, reason: Reason, now: datetime, using: str
) -> list[ScheduledTask]:
    """
    End open runs that the caller has locked with their entities, and cancel their open tasks.

    A task that this thread is running now is left out: it records its own outcome.

    Args:
        those: The runs to end.
        how: How they end.
        reason: Kept on the tasks; the runs keep its text.
        now: Story time.
        using: Database alias.

    Returns:
        The tasks cancelled.
    """
    runs.end(those, how, reason.text, now=now, using=using)
    cancelled = _cancel_those_of(those, reason=reason, now=now, using=using)
    succeed(those, now=now, using=using)
    return cancelled


def cancel_each(tasks: Iterable[ScheduledTask], *, reason: Reason, now: datetime, using: str) -> list[ScheduledTask]:
    """Cancel tasks that the caller has locked. Returns the tasks cancelled."""
    writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=reason) for task in tasks]
    return apply(writes, now=now, using=using)


def _cancel_those_of(those: Sequence[TimelineRun], *, reason: Reason, now: datetime, using: str) -> list[ScheduledTask]:
    if not those:
        return []
    ids = dialect_of(using).list_of(run.pk.hex for run in those)
    return call_off("runs", {"runs": ids}, reason=reason, now=now, using=using)
