"""Redrive: run ended tasks again, each as the next revision of its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connections
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from timeline.definition.names import MAX_TASK_KEY
from timeline.dialects import Among, dialect_of
from timeline.exceptions import AlreadyOpen, InvalidInput, RunEnded, TransitionNotAllowed
from timeline.hooks import hooks
from timeline.lifecycle import OPEN, Reason, State
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.facts import wanted_of
from timeline.operations.leave import exits_since
from timeline.operations.reconcile import reconcile_locked
from timeline.operations.seen import Seen, refuse_changed, refuse_redriven
from timeline.operations.sets import check_spread
from timeline.payloads import check_text, clip
from timeline.registry import registry
from timeline.runs import reopen
from timeline.store.changes import MAX_ACTOR, MAX_REASON
from timeline.store.locks import Locked, lock_rows_to_go_on, lock_tasks_with_runs
from timeline.store.new_rows import create_tasks, next_revision
from timeline.store.returned_rows import FIELDS, cursor_for_rows, read_models, values_of
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply
from timeline.timing import share_of

BATCH: Final = 250
_REFUSED: Final = (AlreadyOpen, RunEnded, TransitionNotAllowed, ScheduledTask.DoesNotExist)


def redrive(
    *,
    task_ids: Sequence[UUID],
    reason: Reason,
    now: datetime,
    using: str,
    seen: Seen | None = None,
    spread: timedelta | None = None,
) -> list[ScheduledTask]:
    """
    Make the next revision of tasks that have ended, due at once or spread over a time. A run that was finished is opened again.

    Args:
        task_ids: Primary keys, any number; all are redriven or none.
        reason: Text shown to people, and who decided; kept on the new rows.
        seen: Task id → its ``seq`` when it was shown to the person who decides; None: nothing is checked.
        spread: If given, the tasks become due up to so much later, each at a moment of its own; 30 days at most. None: all are
            due at once.

    Returns:
        The new tasks, in the order given: in state ``available``, or ``scheduled`` with ``spread``. If the run does not want a
        task at once any more (its anchor has changed, or the task that it follows did not complete), its reason says so. What
        failed expires when it would have; a task that was cancelled or completed has as long as is declared, from now.

    Raises:
        InvalidInput: naming ``spread``.
        ScheduledTask.DoesNotExist: if one of them is not there.
        ChangedSince: if one of them has changed since it was seen, or was redriven since and the new revision has ended, too.
        TransitionNotAllowed: if one of them has not ended.
        AlreadyOpen: if a later revision of one is open, if two revisions of one task are given, or if another run of the same
            timeline and key is open.
        RunEnded: if the run of one ended by an exit, or was finished and an exit came afterwards. Nothing is changed in any of
            these cases.
    """
    check_spread(spread)
    with atomic(using=using):
        tasks, locked = lock_tasks_with_runs(task_ids, using=using)
        refuse_changed(tasks, seen)
        latest = _latest_revisions(tasks, using)
        _check(tasks, latest)
        _refuse_exited(tasks, using)
        for task in tasks:
            refuse_redriven(task, latest[_name(task)], seen)
        _reopen([task.run for task in tasks if task.run is not None], using=using)
        again = [_again(task, latest[_name(task)].revision + 1, reason, spread, now) for task in tasks]
        for tell in hooks().redrives:
            tell(tasks, using=using)
        _insert(again, locked, reason, now, using)
        return again


def _insert(made: Sequence[ScheduledTask], locked: Locked, reason: Reason, now: datetime, using: str) -> None:
    """Insert new tasks, with a note of who decided that, and reconcile their runs. Afterwards each has its stored columns."""
    known = [(run, definition) for run in locked.runs if (definition := registry.about(run.timeline, run.entity_label))]
    there = lock_rows_to_go_on(wanted_of(known), using=using)
    rows = {run.pk: there.get(run.pk, []) for run, _definition in known}
    create_tasks(made, using=using)
    apply([Write(task=task, reason=reason, evidence={"redriven": True}) for task in made], now=now, using=using)
    for task in made:
        if task.run_id in rows:
            rows[task.run_id].append(task)
    reconcile_locked(locked.runs, locked.entities, now=now, using=using, lenient=True, rows=rows)
    if not all(run.is_open for run in locked.runs):  # E.g. its entity is gone: reconciling wrote its tasks.
        stored = ScheduledTask.objects.using(using).filter(Among([task.pk for task in made]))
        columns = {task.pk: task.__dict__ for task in read_models(stored)}
        for task in made:
            task.__dict__.update({name: columns[task.pk][name] for name in FIELDS})


def _name(task: ScheduledTask | _Latest) -> tuple[object, ...]:
    """The values that all revisions of a task have in common."""
    owner = task.run_id or task.entity_ref
    return owner, task.task_key, task.occurrence


@dataclass(slots=True)
class _Latest:
    """The columns that are read of a revision."""

    run_id: UUID | None
    entity_label: str
    entity_id: str
    task_key: str
    occurrence: str
    revision: int
    state: str
    seq: int
    scheduled_at: datetime
    actor: str
    reason: str

    @property
    def entity_ref(self) -> EntityRef:
        return EntityRef(self.entity_label, self.entity_id)


_READ: Final = tuple(column.name for column in fields(_Latest))


def _latest_revisions(tasks: Sequence[ScheduledTask], using: str) -> dict[tuple[object, ...], _Latest]:
    """Read the latest revision of each task, in one statement; an open revision is always the latest."""
    connection, dialect = connections[using], dialect_of(using)
    asked = {"ids": dialect.list_of(task.pk.hex for task in tasks)}
    with cursor_for_rows(connection) as cursor:
        cursor.execute(dialect.sql("latest_revisions").replace("{columns}", ", ".join(_READ)), asked)
        rows = [_Latest(*row) for row in values_of(cursor, connection, _READ)]
    return {_name(row): row for row in rows}


def _check(tasks: Sequence[ScheduledTask], latest: dict[tuple[object, ...], _Latest]) -> None:
    given = set()
    for task in tasks:
        if task.state in OPEN:
            remedy = _("It has not ended; move it or run it now.")
            raise TransitionNotAllowed(task.state, "redrive", remedy, task.pk)
        if latest[_name(task)].state in OPEN or _name(task) in given:
            raise AlreadyOpen(task.pk)
        if task.run is not None and not task.run.is_open and not task.run.is_finished:
            raise RunEnded(task.pk, task.run.end_reason)
        given.add(_name(task))


def _refuse_exited(tasks: Sequence[ScheduledTask], using: str) -> None:
    """Refuse tasks of finished runs with a later exit: it ends the run, and the last look would cancel the new tasks."""
    known = set(registry.task_keys())
    finished = [task for task in tasks if task.run is not None and task.run.is_finished and task.task_key in known]
    asked = [(task.run, registry.task(task.task_key)[0]) for task in finished]
    exits = exits_since([(run, definition) for run, definition in asked if run is not None], using=using)
    for task in finished:
        if task.run_id in exits:
            raise RunEnded(task.pk, exits[task.run_id])


def _again(
    task: ScheduledTask, revision: int, reason: Reason, spread: timedelta | None, now: datetime
) -> ScheduledTask:
    named = (task.entity_label, task.entity_id, task.task_key, task.occurrence)
    again = made_again(task, now + share_of(spread, *named) if spread else now, now=now)
    again.revision = revision
    again.reason_code = reason.code
    again.reason, again.actor = clip(reason.text, MAX_REASON), clip(reason.actor, MAX_ACTOR)
    return again


def made_again(task: ScheduledTask, scheduled_at: datetime, *, now: datetime) -> ScheduledTask:
    """
    Make the row that runs an ended task again. Not saved.

    What failed was not done in its time, and is no less late when it is tried once more. Who redrives what was cancelled, or
    is done, has chosen another time.
    """
    again = next_revision(task, scheduled_at, now=now)
    if task.state == State.DISCARDED:
        again.expires_at = task.expires_at
    return again


def _reopen(runs: Sequence[TimelineRun], *, using: str) -> None:
    """Open finished runs again. Raises if another run has taken the place of one."""
    finished = {run.pk: run for run in runs if not run.is_open}
    if not finished:
        return
    open_runs = TimelineRun.objects.using(using).open()
    others = open_runs.filter(
        timeline__in={run.timeline for run in finished.values()},
        entity_label__in={run.entity_label for run in finished.values()},
        entity_id__in={run.entity_id for run in finished.values()},
    )
    taken = {(run.timeline, run.entity_ref, run.key) for run in others}
    for run in finished.values():
        if (run.timeline, run.entity_ref, run.key) in taken:
            raise AlreadyOpen(format_lazy(_("a later run of {timeline}"), timeline=run.timeline))
        taken.add((run.timeline, run.entity_ref, run.key))
    reopen(list(finished.values()), using=using)


@dataclass(slots=True)
class Redriven:
    """What was done: how many tasks run again, and which cannot: id → why."""

    redriven: int = 0
    left: dict[UUID, str] = field(default_factory=dict)


def redrive_group(
    *, group: str, reason: Reason, spread: timedelta | None = None, now: datetime, using: str
) -> Redriven:
    """
    Redrive the dead letters of a group that were there when this began. Called again after a crash, it continues.

    Args:
        group: The fingerprint of the group.
        reason: Text shown to people, and who decided; kept on the new rows.
        spread: If given, the tasks become due up to so much later, each at a moment of its own; 30 days at most. None: all are
            due at once.

    Returns:
        What was done. Each batch commits on its own, unless you are in a transaction. A task that cannot be redriven (for
        example because its run was ended by an exit) is left out and does not prevent the others.

    Raises:
        InvalidInput: naming ``spread``, or ``group`` if it is empty or no text for a column; nothing is changed then.
    """
    check_spread(spread)
    check_text("group", group, MAX_TASK_KEY)
    if not group:
        raise InvalidInput("group", _("is empty."), _("Give the fingerprint of a group."))
    done = Redriven()
    dead = ScheduledTask.objects.using(using).dead_letters(group).filter(finished_at__lte=now)
    last: UUID | None = None
    while ids := list((dead.filter(pk__gt=last) if last else dead).order_by("pk").values_list("pk", flat=True)[:BATCH]):
        last = ids[-1]
        _redrive(ids, done, reason, spread, now, using)
    return done


def redrive_those(
    task_ids: Sequence[UUID], *, reason: Reason, spread: timedelta | None = None, now: datetime, using: str
) -> Redriven:
    """Redrive dead letters as ``redrive_group`` does. Raises ``InvalidInput`` for ``spread``; nothing is changed then."""
    check_spread(spread)
    done = Redriven()
    for begin in range(0, len(task_ids), BATCH):
        _redrive(task_ids[begin : begin + BATCH], done, reason, spread, now, using)
    return done


def _redrive(
    ids: Sequence[UUID], done: Redriven, reason: Reason, spread: timedelta | None, now: datetime, using: str
) -> None:
    """Redrive all; if one task cannot be redriven, try each half, so that only that one is left out."""
    try:
        done.redriven += len(redrive(task_ids=ids, reason=reason, now=now, using=using, spread=spread))
    except _REFUSED as error:
        if len(ids) == 1:
            done.left[ids[0]] = str(error)
        else:
            middle = len(ids) // 2
            for half in (ids[:middle], ids[middle:]):
                _redrive(half, done, reason, spread, now, using)
