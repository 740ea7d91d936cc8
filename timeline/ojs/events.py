"""Events of jobs and of schedules, read from the logs of their rows: nothing is written for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from timeline.lifecycle import ReasonCode, State
from timeline.models import LogEntry, ScheduledTask
from timeline.ojs.crons import TASK_KEY
from timeline.ojs.jobs import MADE
from timeline.ojs.kinds import key_of
from timeline.ojs.values import milliseconds, told
from timeline.ojs.wire import told_error

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

SOURCE: Final = "ojs://timeline/jobs"
_BY_CLOCK: Final = Q(task__task_key=TASK_KEY, to_state=State.COMPLETED)

# Name of an event → which entries of the log tell it.
EVENTS: Final[dict[str, Q]] = {
    "job.enqueued": (Q(detail__ojs=MADE) | Q(detail__redriven=True)) & Q(to_state=State.AVAILABLE),
    "job.scheduled": Q(detail__ojs=MADE, to_state=State.SCHEDULED),
    "job.started": Q(to_state=State.ACTIVE) & ~Q(from_state=State.ACTIVE),
    "job.completed": Q(to_state=State.COMPLETED) & ~Q(task__task_key=TASK_KEY),
    "job.failed": Q(from_state=State.ACTIVE, detail__has_key="error"),
    "job.retrying": Q(from_state=State.ACTIVE, to_state=State.RETRYABLE, detail__has_key="error"),
    "job.discarded": Q(to_state=State.DISCARDED),
    "job.cancelled": Q(to_state=State.CANCELLED) & ~Q(reason_code=ReasonCode.EXPIRED),
    "job.expired": Q(to_state=State.CANCELLED, reason_code=ReasonCode.EXPIRED),
    "cron.triggered": _BY_CLOCK & Q(task__result__has_key="job_id"),
    "cron.skipped": _BY_CLOCK & Q(task__result__has_key="skipped"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which events are asked for; an empty sequence: all. ``after``: the number of an entry; None: the latest there are."""

    types: Sequence[str] = ()
    queues: Sequence[str] = ()
    job_types: Sequence[str] = ()
    after: int | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Found:
    """Events in their order; the number to go on after; whether there are more."""

    events: list[dict[str, Any]]
    cursor: int | None
    more: bool


def events(asked: Asked, rows: ScheduledTaskQuerySet, *, using: str) -> Found:
    """Read the events of these jobs, and of schedules unless queues or types of jobs are named. Two statements at most."""
    types = [name for name in EVENTS if not asked.types or name in asked.types]
    of_types = Q(pk__in=[])
    for name in types:
        of_types |= EVENTS[name]
    if asked.queues:
        rows = rows.filter(queue__in=asked.queues)
    if asked.job_types:
        rows = rows.filter(task_key__in=[key_of(each) for each in asked.job_types])
    whose = Q(Exists(rows.filter(pk=OuterRef("task_id"))))
    if not (asked.queues or asked.job_types):
        whose |= Q(task__task_key=TASK_KEY, to_state=State.COMPLETED)
    log = LogEntry.objects.using(using).filter(of_types, whose).select_related("task")
    if asked.after is None:
        entries, more = list(log.order_by("-pk")[: asked.limit])[::-1], False
    else:
        entries = list(log.filter(pk__gt=asked.after).order_by("pk")[: asked.limit + 1])
        entries, more = entries[: asked.limit], len(entries) > asked.limit
    begun = _begun(entries, using)
    told_events = [event for entry in entries for event in _told(entry, begun) if event["type"] in types]
    return Found(told_events, entries[-1].pk if entries else asked.after, more)


def _begun(entries: Iterable[LogEntry], using: str) -> dict[tuple[UUID, int], datetime]:
    """When the attempts began that these entries end."""
    ended = {entry.task_id for entry in entries if entry.from_state == State.ACTIVE}
    if not ended:
        return {}
    starts = LogEntry.objects.using(using).filter(task__in=ended, to_state=State.ACTIVE)
    told_starts = starts.exclude(from_state=State.ACTIVE).values_list("task_id", "attempt", "at")
    return {(task_id, attempt): at for task_id, attempt, at in told_starts}


def _told(entry: LogEntry, begun: Mapping[tuple[UUID, int], datetime]) -> Iterator[dict[str, Any]]:
    began = begun.get((entry.task_id, entry.attempt))
    took = 0 if began is None else milliseconds(max(entry.at - began, timedelta(0)))
    if entry.task.task_key == TASK_KEY:
        told_by = _of_schedule(entry)
    elif entry.from_state == State.ACTIVE:
        told_by = _of_end(entry, took)
    else:
        told_by = _of_others(entry)
    for name, data in told_by:
        yield {
            "specversion": "1.0",
            "id": f"evt_{entry.pk}_{name.partition('.')[2]}",
            "type": name,
            "source": SOURCE,
            "time": told(entry.at),
            "subject": entry.task.occurrence,
            "data": data,
        }


def _about(task: ScheduledTask) -> dict[str, Any]:
    return {"job_type": task.payload.get("type", ""), "queue": task.queue}


def _of_others(entry: LogEntry) -> Iterator[tuple[str, dict[str, Any]]]:
    task, about = entry.task, _about(entry.task)
    if entry.to_state == State.ACTIVE:
        yield "job.started", {**about, "worker_id": entry.detail.get("worker", ""), "attempt": entry.attempt}
    elif entry.to_state == State.CANCELLED:
        yield _cancelled(entry)
    elif entry.to_state == State.SCHEDULED:
        yield "job.scheduled", {**about, "scheduled_at": told(task.nominal_at)}
    else:
        yield "job.enqueued", {**about, "priority": -task.priority}


def _of_end(entry: LogEntry, took: int) -> Iterator[tuple[str, dict[str, Any]]]:
    task, about = entry.task, _about(entry.task)
    error = told_error(entry.detail["error"], entry) if entry.detail.get("error") else None
    if entry.to_state == State.COMPLETED:
        yield "job.completed", {**about, "duration_ms": took, "attempt": entry.attempt, "result": task.result}
    if error is not None:
        yield "job.failed", {**about, "attempt": entry.attempt, "error": error, "duration_ms": took}
    if error is not None and entry.to_state == State.RETRYABLE:
        at = entry.detail.get("scheduled_at", "")
        tries = {"attempt": entry.attempt, "max_attempts": task.max_attempts}
        due = {"next_retry_at": told(datetime.fromisoformat(at))} if at else {}
        yield "job.retrying", {**about, **tries, **due, "error": error}
    if entry.to_state == State.DISCARDED:
        yield "job.discarded", {**about, "total_attempts": entry.attempt, "last_error": error or {}}
    if entry.to_state == State.CANCELLED:
        yield _cancelled(entry)


def _cancelled(entry: LogEntry) -> tuple[str, dict[str, Any]]:
    name = "job.expired" if entry.reason_code == ReasonCode.EXPIRED else "job.cancelled"
    said = {"cancelled_by": entry.actor, "reason": entry.reason}
    return name, {**_about(entry.task), **{key: value for key, value in said.items() if value}}


def _of_schedule(entry: LogEntry) -> Iterator[tuple[str, dict[str, Any]]]:
    result = entry.task.result or {}
    data = {name: value for name, value in result.items() if name != "skipped"}
    data["scheduled_at"] = told(entry.task.nominal_at)
    if "skipped" in result:
        yield "cron.skipped", {**data, "reason": result["skipped"]}
    elif "job_id" in result:
        yield "cron.triggered", data
