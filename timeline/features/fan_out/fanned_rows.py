"""What the handler of one attempt fans out: remembered here, and written with its outcome."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections
from django.utils.translation import gettext_lazy as _

from timeline.definition.context import step_under_way
from timeline.dialects import dialect_of
from timeline.exceptions import InvalidInput
from timeline.features.fan_out.declaration import check_count, check_size, refuse_twice
from timeline.features.fan_out.sentences import FANNED_OUT_ANEW
from timeline.hooks import hooks
from timeline.lifecycle import OPEN, Trigger
from timeline.models import ScheduledTask, TimelineRun
from timeline.payloads import check_data
from timeline.planning import Create, Times
from timeline.registry import registry
from timeline.store.changes import Write
from timeline.store.new_rows import create_tasks, expiry_at, new_task
from timeline.store.transition import apply

if TYPE_CHECKING:
    from timeline.definition import Task
    from timeline.features.fan_out.declaration import Payloads

Kind = tuple[UUID | None, str]  # Id of a run, key of a task.
Place = tuple[UUID | None, str, str]  # Id of a run, key of a task, occurrence.


class FannedOut:
    """The occurrences that an attempt wants, forgotten unless it completes. ``in_run``: whether its task belongs to a run."""

    def __init__(self, handler: Task[Any, ..., Any], *, in_run: bool) -> None:
        self._handler = handler
        self._in_run = in_run
        self._wanted: dict[str, Payloads] = {}
        self._size = 0  # Bytes of all payloads.
        self._is_over = False

    def want(self, declared: Task[Any, ..., Any], payloads: Payloads) -> None:
        """Remember occurrences. Raises ``InvalidInput`` for the place of this call, or the names or payloads."""
        self._refuse_place()
        self._refuse_stranger(declared)
        known = self._wanted.get(declared.name, {})
        for occurrence in payloads:
            if occurrence in known:
                refuse_twice(occurrence)
        check_count(len(payloads) + sum(map(len, self._wanted.values())))
        size = self._size + sum(check_data("payload", payload) for payload in payloads.values())
        check_size(size)
        self._size, self._wanted[declared.name] = size, known | payloads

    def end(self) -> Mapping[str, Payloads]:
        """Give what is wanted: name of a task → its occurrences. Later calls of ``want`` are refused."""
        self._is_over = True
        return self._wanted

    def _refuse_place(self) -> None:
        if self._handler.options.bulk is not None:
            problem = _("cannot be called by a call for many.")
            raise InvalidInput("fan_out", problem, _("Declare the task that fans out without bulk."))
        if not self._in_run:
            problem = _("cannot be called by an ad hoc task, which has no run.")
            raise InvalidInput("fan_out", problem, _("Start a run of the timeline."))
        if step_under_way.get() is not None:
            problem = _("cannot be called within a step, which a later attempt passes over.")
            raise InvalidInput("fan_out", problem, _("Let the step return what is wanted, and call it in the handler."))
        if self._is_over:
            problem = _("comes too late: the handler has ended.")
            raise InvalidInput("fan_out", problem, _("Wait in the handler for what calls it."))

    def _refuse_stranger(self, declared: Task[Any, ..., Any]) -> None:
        by = declared.when.predecessor_name if declared.when else ""
        if by != self._handler.name:
            problem, remedy = _("%(name)s is fanned out by %(by)s, not by %(handler)s."), _("Call it there.")
            raise InvalidInput("task", problem, remedy, name=declared.name, by=by, handler=self._handler.name)


def write_fanned_out(writes: Iterable[Write], runs: Mapping[UUID, TimelineRun], *, now: datetime, using: str) -> None:
    """
    Insert the rows that completed tasks fan out, due at once, in a fixed number of statements. Ended runs (``runs`` are locked)
    get none. If there is a row of an occurrence already, the new row is its next revision, and an open one is cancelled first.
    """
    wanted = [write for write in writes if write.fans_out and _run_of(write, runs).is_open]
    if not wanted:
        return
    earlier = _earlier(wanted, using=using)
    latest = {_place(row): row for row in sorted(earlier, key=lambda row: row.revision)}
    rows = [row for write in wanted for row in _rows_of(write, runs, latest, now=now)]
    _make_room(wanted, earlier, rows, now=now, using=using)
    create_tasks(rows, using=using)


def still_open(kinds: Collection[Kind], *, using: str) -> set[Kind]:
    """Which of these kinds have a task in their run that has not ended. One statement, with one look in an index for each."""
    if not kinds:
        return set()
    dialect, pairs = dialect_of(using), [(run_id.hex, task_key) for run_id, task_key in kinds if run_id is not None]
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("still_open"), dialect.entities_of(pairs))
        return {(UUID(str(run_id)), task_key) for run_id, task_key in cursor.fetchall()}


def _run_of(write: Write, runs: Mapping[UUID, TimelineRun]) -> TimelineRun:
    assert write.task.run_id is not None  # noqa: S101 (an ad hoc task fans out nothing)
    return runs[write.task.run_id]


def _earlier(wanted: Sequence[Write], *, using: str) -> list[ScheduledTask]:
    """Lock the rows that were fanned out before."""
    keys = {key for write in wanted for key in _keys(write)}
    runs = {write.task.run_id for write in wanted}
    earlier = ScheduledTask.objects.using(using).filter(run__in=runs, task_key__in=keys).defer("payload", "result")
    return list(earlier.by_id().locked())


def _make_room(
    wanted: Sequence[Write],
    earlier: Sequence[ScheduledTask],
    rows: Sequence[ScheduledTask],
    *,
    now: datetime,
    using: str,
) -> None:
    """Cancel open rows that were fanned out before. The rows that replace them take over their places of limits."""
    by_key = {key: write.task for write in wanted for key in _keys(write)}
    writes = [
        Write(task=row, triggers=(Trigger.CANCEL,), reason=FANNED_OUT_ANEW(task=by_key[row.task_key].task_name))
        for row in earlier
        if row.state in OPEN
    ]
    for hand_on in hooks().successions:
        writes = hand_on(writes, rows, earlier=earlier, using=using)
    apply(writes, now=now, using=using)


def _keys(write: Write) -> list[str]:
    return [f"{write.task.timeline}.{name}" for name in write.fans_out]


def _place(row: ScheduledTask) -> Place:
    return row.run_id, row.task_key, row.occurrence


def _rows_of(
    write: Write, runs: Mapping[UUID, TimelineRun], latest: Mapping[Place, ScheduledTask], *, now: datetime
) -> Iterator[ScheduledTask]:
    run, since = _run_of(write, runs), write.task.finished_at or now
    definition, _declared = registry.task(write.task.task_key)
    for name, payloads in write.fans_out.items():
        task_key = definition.task_key(name)
        times = Times(
            nominal_at=since,
            scheduled_at=since,
            anchor=f"each:{write.task.task_name}",
            anchor_value=since,
            expires_at=expiry_at(task_key, since),
        )
        for occurrence, payload in payloads.items():
            before = latest.get((run.pk, task_key, occurrence))
            revision, previous = (before.revision + 1, before.pk) if before else (1, None)
            change = Create(task_name=name, times=times, revision=revision, previous=previous, why="it is fanned out")
            row = new_task(run, definition, change, now=now)
            row.occurrence, row.payload = occurrence, payload
            yield row
