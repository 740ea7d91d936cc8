"""Redrive: run again what has ended, as the next revision of its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connections
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from timeline.dialects import dialect_of
from timeline.exceptions import AlreadyOpen, RunEnded, TransitionNotAllowed
from timeline.lifecycle import OPEN, Reason
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.among import Among
from timeline.operations._seen import Seen, refuse_changed, refuse_redriven
from timeline.operations.exits import exits_since
from timeline.operations.reconciling import reconcile_locked
from timeline.operations.sets import check_spread
from timeline.payloads import clip
from timeline.registry import registry
from timeline.runs import reopen
from timeline.store.change_columns import MAX_ACTOR, MAX_REASON
from timeline.store.competing import give_up_places
from timeline.store.creating import create_tasks, next_revision
from timeline.store.isolating import atomic
from timeline.store.locking import lock_tasks_with_runs
from timeline.store.returning import COLUMNS, FIELDS, as_tasks, cursor_for_rows, read_models, rows_of
from timeline.timing import share_of


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
    Make the next revision of tasks that have ended, due at once or within a span. A run that was finished is opened again.

    Args:
        task_ids: Primary keys, any number; all are redriven or none.
        reason: Text shown to people, and who decided; kept on the new rows.
        now: Story time of the decision.
        using: Database alias the tasks live in.
        seen: Task id → its ``seq`` as it was shown to who decided; None: whatever it is.
        spread: Within which they become due, each at a moment of its own; 30 days at most. None: all at once.

    Returns:
        The new tasks, in the order given: in state ``available``, or ``scheduled`` with ``spread``, unless the run as it is
        now does not want them at once (its anchor changed meanwhile, or what they follow did not complete), which their reason
        says.

    Raises:
        InvalidInput: naming ``spread``.
        ScheduledTask.DoesNotExist: if one of them is not there.
        ChangedSince: if one of them has changed since it was seen, or was redriven and that has ended too.
        TransitionNotAllowed: if one of them has not ended.
        AlreadyOpen: if a later revision of one is open, two revisions of one are given, or another run of the same timeline
            and key is open.
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
        give_up_places(tasks, using=using)
        create_tasks(again, using=using)
        reconcile_locked(locked.runs, locked.entities, now=now, using=using, lenient=True)
        return _as_stored(again, {run.pk: run for run in locked.runs}, using)


def _as_stored(made: Sequence[ScheduledTask], runs: Mapping[UUID, TimelineRun], using: str) -> list[ScheduledTask]:
    """Read new tasks as they are once their runs are reconciled, in the order given, each with its run."""
    stored = {
        task.pk: task
        for task in read_models(ScheduledTask.objects.using(using).filter(Among([task.pk for task in made])))
    }
    for task in stored.values():
        task.run = runs[task.run_id] if task.run_id else None
    return [stored[task.pk] for task in made]


def _name(task: ScheduledTask) -> tuple[object, ...]:
    """What all revisions of the same task have in common."""
    owner = task.run_id or task.entity_ref
    return owner, task.task_key, task.occurrence


def _latest_revisions(tasks: Sequence[ScheduledTask], using: str) -> dict[tuple[object, ...], ScheduledTask]:
    """Read the latest revision of each task, all in one statement; an open one is always the latest."""
    connection, dialect = connections[using], dialect_of(using)
    asked = {"ids": dialect.list_of(task.pk.hex for task in tasks)}
    with cursor_for_rows(connection) as cursor:
        cursor.execute(dialect.sql("latest_revisions").replace("{columns}", COLUMNS), asked)
        rows = as_tasks(rows_of(cursor, connection, tuple(FIELDS)).values(), using)
    return {_name(row): row for row in rows}


def _check(tasks: Sequence[ScheduledTask], latest: dict[tuple[object, ...], ScheduledTask]) -> None:
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
    """An exit that came when a run was finished already ends it all the same: the last look would call off what is new."""
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
    again = next_revision(task, now + share_of(spread, *named) if spread else now, now=now)
    again.revision = revision
    again.reason_code = reason.code
    again.reason, again.actor = clip(reason.text, MAX_REASON), clip(reason.actor, MAX_ACTOR)
    return again


def _reopen(runs: Sequence[TimelineRun], *, using: str) -> None:
    """Open finished runs again, unless another one has taken their place."""
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
