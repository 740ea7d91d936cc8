"""How tasks stand, as the framework tells it: read from their rows, and where these do not say it from their logs."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Q, Subquery

from timeline.django_tasks.framework import TaskError, TaskResult, TaskResultDoesNotExist, TaskResultStatus
from timeline.django_tasks.functions import function_of
from timeline.django_tasks.rows import database_of
from timeline.lifecycle import ReasonCode, State
from timeline.models import LogEntry, ScheduledTask

if TYPE_CHECKING:
    from timeline.django_tasks.backend import TimelineBackend

_STATUS: Final = {
    State.ACTIVE: TaskResultStatus.RUNNING,
    State.COMPLETED: TaskResultStatus.SUCCESSFUL,
    State.DISCARDED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}
# An attempt that was given back without its function having been entered.
_GIVEN_BACK: Final = frozenset({ReasonCode.RELEASED, ReasonCode.HOLD})


class Raised(TaskError):  # type: ignore[misc]  # Of the framework, whichever it is.
    """An error of an attempt. Its class is looked up among what is imported: nothing is imported because a row says so."""

    __slots__ = ()

    @property
    def exception_class(self) -> type[BaseException]:
        """The class; ``ImportError`` if this process has not imported it, ``ValueError`` if it is no exception."""
        module, _dot, name = self.exception_class_path.rpartition(".")
        found = getattr(sys.modules.get(module), name, None)
        if found is None:
            raise ImportError(f"This process has not imported {self.exception_class_path!r}.")
        if not (isinstance(found, type) and issubclass(found, BaseException)):
            raise ValueError(f"{self.exception_class_path!r} does not reference a valid exception.")
        return found


@dataclass(slots=True)
class _History:
    """What the logs of a task's revisions tell."""

    enqueued_at: datetime
    started: list[datetime] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)


def result_by_id(result_id: str, backend: TimelineBackend) -> Any:
    """The result of this id; ``TaskResultDoesNotExist`` if there is none, or this process does not know its function."""
    try:
        key = UUID(result_id)
    except (ValueError, AttributeError, TypeError):
        raise TaskResultDoesNotExist(result_id) from None
    using = database_of(backend)
    tasks = ScheduledTask.objects.using(using).filter(run=None, entity_label="", entity_id="")
    named = {name: Subquery(tasks.filter(pk=key).values(name)[:1]) for name in ("task_key", "occurrence")}
    revisions = list(tasks.filter(**named).order_by("revision"))
    if not revisions or (known := function_of(revisions[-1].task_key)) is None or known[0] != backend.alias:
        raise TaskResultDoesNotExist(result_id)
    return results_of(revisions[-1:], using=using, known=revisions)[0]


def results_of(tasks: Sequence[ScheduledTask], *, using: str, known: Sequence[ScheduledTask] = ()) -> list[Any]:
    """
    The results of tasks whose functions this process knows. Two statements at most, none for what came to its end at once.

    Args:
        tasks: The latest revision of each.
        known: All their revisions, in order, if they were read; none: they are read.
    """
    told = [task for task in tasks if not _tells_all(task)]
    histories = _histories(told, known or _revisions(told, using), using) if told else {}
    return [_result(task, histories.get(task.pk)) for task in tasks]


def _tells_all(task: ScheduledTask) -> bool:
    """Whether the row says all: it was not tried yet, or once, and its attempt has not failed."""
    is_quiet = not task.attempt or (task.attempt == 1 and task.state in (State.ACTIVE, State.COMPLETED))
    return task.revision == 1 and is_quiet


def _revisions(tasks: Iterable[ScheduledTask], using: str) -> list[ScheduledTask]:
    later = [task for task in tasks if task.revision > 1]
    if not later:
        return list(tasks)
    those = Q(pk__in=[task.pk for task in tasks])
    for task in later:
        those |= Q(run=None, entity_label="", entity_id="", task_key=task.task_key, occurrence=task.occurrence)
    return list(ScheduledTask.objects.using(using).filter(those).order_by("revision"))


def _histories(tasks: Sequence[ScheduledTask], revisions: Sequence[ScheduledTask], using: str) -> dict[UUID, _History]:
    of: dict[tuple[str, str], list[ScheduledTask]] = defaultdict(list)
    for revision in revisions:
        of[revision.task_key, revision.occurrence].append(revision)
    entries: dict[UUID, list[LogEntry]] = defaultdict(list)
    for entry in LogEntry.objects.using(using).filter(task__in=[each.pk for each in revisions]).order_by("seq"):
        entries[entry.task_id].append(entry)
    return {
        task.pk: _history([(each, entries[each.pk]) for each in of[task.task_key, task.occurrence]]) for task in tasks
    }


def _history(revisions: Sequence[tuple[ScheduledTask, Sequence[LogEntry]]]) -> _History:
    history = _History(revisions[0][0].created_at)
    for task, entries in revisions:
        for entry in entries:
            _take(entry, task, history)
    return history


def _take(entry: LogEntry, task: ScheduledTask, history: _History) -> None:
    if entry.to_state == State.ACTIVE and entry.from_state != State.ACTIVE:
        history.started.append(entry.at)
        history.workers.append(task.worker)
    elif entry.from_state == State.ACTIVE and entry.to_state != State.ACTIVE and history.started:
        if entry.reason_code in _GIVEN_BACK:
            history.started.pop()
            history.workers.pop()
            return
        if worker := entry.detail.get("worker") or entry.detail.get("said", {}).get("worker"):
            history.workers[-1] = worker
        if error := entry.detail.get("error"):
            history.errors.append(_raised(error["class"], error["traceback"]))


def _raised(path: str, told: str) -> Any:
    return Raised(exception_class_path=path if "." in path else f"builtins.{path}", traceback=told)


def _as_enqueued(made: Any, changes: Mapping[str, Any]) -> Any:
    """As ``using()`` gives it; but not checked again: its queue may not be in the settings any more."""
    task = object.__new__(type(made))
    for each in fields(made):
        object.__setattr__(task, each.name, changes.get(each.name, getattr(made, each.name)))
    return task


def _result(task: ScheduledTask, history: _History | None) -> Any:
    """The result of one task, whose history is read if its row does not tell all."""
    known = function_of(task.task_key)
    assert known is not None  # noqa: S101 (callers see to that)
    alias, made = known
    run_after = task.nominal_at if task.nominal_at != task.created_at and task.revision == 1 else None
    started = history.started if history else [task.started_at] if task.started_at and task.attempt else []
    errors = list(history.errors) if history else []
    if (
        task.state in (State.CANCELLED, State.DISCARDED)
        and task.reason_code != ReasonCode.ERROR
        and not (task.state == State.DISCARDED and errors)
    ):
        name = "WorkerLost" if task.reason_code == ReasonCode.WORKER_LOST else "Cancel"
        errors.append(_raised(f"timeline.exceptions.{name}", task.reason or task.get_reason_code_display()))
    result = TaskResult(
        task=_as_enqueued(
            made, {"priority": -task.priority, "queue_name": task.queue, "run_after": run_after, "backend": alias}
        ),
        id=task.occurrence,
        status=_STATUS.get(State(task.state), TaskResultStatus.READY),
        enqueued_at=history.enqueued_at if history else task.created_at,
        started_at=started[0] if started else None,
        finished_at=task.finished_at,
        last_attempted_at=started[-1] if started else None,
        args=task.payload.get("args", []),
        kwargs=task.payload.get("kwargs", {}),
        backend=alias,
        errors=errors,
        worker_ids=list(history.workers) if history else [task.worker for _start in started],
    )
    object.__setattr__(result, "_return_value", task.result)
    return result
