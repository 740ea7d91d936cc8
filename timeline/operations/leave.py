"""Leave: end runs before they are finished, and cancel their open tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connections
from django.db.models import Model

from timeline import runs
from timeline.definition import Definition
from timeline.dialects import dialect_of, narrowed
from timeline.exceptions import NoOpenRun
from timeline.hooks import hooks
from timeline.lifecycle import Reason, ReasonCode, RunEnd, Trigger
from timeline.models import EntityRef, Event, ScheduledTask, TimelineRun, ref_of
from timeline.models.entities import by_label
from timeline.models.kin import kin_of
from timeline.operations.current import running
from timeline.operations.succession import succeed
from timeline.payloads import check_is_text, check_text
from timeline.registry import registry
from timeline.store.changes import ALWAYS
from timeline.store.locks import lock_entity_now
from timeline.store.returned_rows import COLUMNS, FIELDS, RawRow, rows_of
from timeline.store.signal_dispatch import announce, is_heard, tell_ended
from timeline.store.transactions import atomic, in_transaction
from timeline.store.transition import MAX_REASON, Write, advance, apply

# The columns needed to tell of a transition and to find the entity of a task; in the model's order.
BRIEFLY: Final = ", ".join(name for name in FIELDS if name in {*ALWAYS, "run_id", "limit_key", "slot"})


def call_off(
    whose: str,
    named: dict[str, Any],
    *,
    columns: str = BRIEFLY,
    before: datetime | None = None,
    reason: Reason,
    now: datetime,
    using: str,
) -> list[ScheduledTask]:
    """
    Cancel open tasks of locked entities; gives them, the oldest first. A task that this thread is running records its own
    outcome.

    Args:
        whose: ``entity``: of the entity in ``named`` (``label``, ``entity``), whose open runs are locked first. ``kin``: of an
            entity with several names, see ``Dialect.entities_of``. ``runs``: of the locked runs in ``named``, a list of ids.
        columns: The columns of the tasks to read, in the model's order; others are read when they are used.
        before: With ``runs``: only tasks of ``kinds`` in ``named`` whose nominal time and planned due time are before this.
            For those in ``earlier``, the planned due time does not matter. None: all tasks.
    """
    connection, dialect = connections[using], dialect_of(using)
    columns = COLUMNS if is_heard() else columns
    asked = {**named, "spared": dialect.list_of(task_id.hex for task_id in running())}
    parts = frozenset[str]()
    if before is not None:
        parts, asked["before"] = frozenset({"before"}), connection.ops.adapt_datetimefield_value(before)
    if dialect.has_set_statements:
        rows = advance(
            whose, Trigger.CANCEL, columns=columns, reason=reason, now=now, using=using, parts=parts, **asked
        )
        tasks = sorted(_as_tasks(rows, using), key=attrgetter("pk"))
        tell_ended(tasks, using=using)
        if any(task.limit_key for task in tasks):
            announce(using=using)  # Another task may wait for a place that one of these had.
        return tasks
    with connection.cursor() as cursor:
        cursor.execute(narrowed(dialect.sql(f"open_of_{whose}"), parts).replace("{columns}", columns), asked)
        tasks = _as_tasks(rows_of(cursor, connection).values(), using)
    writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=reason) for task in tasks]
    return apply(writes, now=now, using=using)


def _as_tasks(rows: Iterable[RawRow], using: str) -> list[ScheduledTask]:
    return [ScheduledTask.from_db(using, list(row), list(row.values())) for row in rows]


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
    """End the open runs for which an event is an exit, for entities that the caller has locked."""
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
    End the open runs of locked entities with the same label, and cancel their open tasks. ``key``: of the runs; None: any.
    """
    with atomic(using=using, savepoint=False):
        ended = runs.end_open(timelines, refs, how, reason.text, key=key, now=now, using=using)
        cancelled = _cancel_those_of(ended, reason=reason, now=now, using=using)
        succeed(ended, now=now, using=using)
        for tell in hooks().ends:
            tell(cancelled, now=now, using=using)
    return Ended(ended, cancelled)


def end_runs(
    those: Sequence[TimelineRun], how: RunEnd, *, reason: Reason, now: datetime, using: str
) -> list[ScheduledTask]:
    """End runs locked with their entities; gives the cancelled tasks. One that this thread runs records its own outcome."""
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


def exits_since(asked: Sequence[tuple[TimelineRun, Definition]], *, using: str) -> dict[UUID, str]:
    """Runs that an event recorded after their beginning ends: id → name of the exit. One statement; none without exits."""
    asked = [(run, definition) for run, definition in asked if definition.exits]
    if not asked:
        return {}
    events = _events(asked, using)
    ended: dict[UUID, str] = {}
    for run, definition in asked:
        for event in events.get(run.entity_ref, []):
            # The time of recording counts. When the event happened, and from when the times of the run count, does not matter.
            since_start = (event.recorded_at, event.pk) > (run.known_since, run.pk)
            if since_start and event.name in definition.exits:
                ended.setdefault(run.pk, definition.exits[event.name])
    return ended


def _events(asked: Sequence[tuple[TimelineRun, Definition]], using: str) -> dict[EntityRef, list[Event]]:
    """Read the exit events of the runs' entities, under all their names. The caller checks each."""
    kin = kin_of({run.entity_ref for run, _definition in asked}, using=using)
    names = {name for several in kin.values() for name in several}
    events = Event.objects.using(using).filter(
        entity_label__in=sorted({name.label for name in names}),
        entity_id__in=sorted({name.id for name in names}),
        name__in=sorted({name for _run, definition in asked for name in definition.exits}),
        recorded_at__gte=min(run.known_since for run, _definition in asked),
    )
    found: dict[EntityRef, list[Event]] = defaultdict(list)
    for event in events.only("name", "entity_label", "entity_id", "recorded_at"):
        found[event.entity_ref].append(event)
    return {ref: [event for name in several for event in found.get(name, ())] for ref, several in kin.items()}
