"""Jobs as the specification writes them, made of rows and, where these do not say all, of their logs."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from timeline.lifecycle import FINAL, WAITING, ReasonCode, State
from timeline.models import LogEntry, ScheduledTask
from timeline.ojs.models import Role, WorkflowJob
from timeline.ojs.retry import policy_of
from timeline.ojs.values import told

NEVER: Final = datetime(8999, 1, 1, tzinfo=UTC)  # When a job is due that waits until somebody activates it.
PENDING: Final = "pending"
PART_OF: Final = (
    "workflow"  # In the payload of a job: id of its workflow, its role and place, and whether steps are in order.
)
EXPIRED: Final = State.DISCARDED.value


@dataclass(slots=True)
class History:
    """What the logs of a job tell: when it was first made, its errors, and how long it waited before its last attempt."""

    created_at: datetime | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    delay_ms: int | None = None


def state_of(task: ScheduledTask, now: datetime) -> str:
    """
    The state of a job. It is that of its row, but that what is due counts as available before the poll says so, what has
    expired as discarded, and what nobody has activated as pending.
    """
    state = State(task.state)
    if has_expired(task, now):
        return EXPIRED
    if is_pending(task):
        return PENDING
    if state == State.PENDING or (state in WAITING and task.scheduled_at <= now):
        return State.AVAILABLE.value
    return state.value


def has_expired(task: ScheduledTask, now: datetime) -> bool:
    """Whether it was called off because its time was over, or will be when somebody looks."""
    if task.state in FINAL:
        return task.state == State.CANCELLED and task.reason_code == ReasonCode.EXPIRED
    return task.state != State.ACTIVE and task.expires_at is not None and task.expires_at <= now


def is_pending(task: ScheduledTask) -> bool:
    return task.state == State.SCHEDULED and task.scheduled_at >= NEVER


def jobs_of(tasks: Sequence[ScheduledTask], now: datetime, *, using: str) -> list[dict[str, Any]]:
    """Write jobs, each by its latest revision. One statement for those tried before, and two for those of workflows."""
    again = [task for task in tasks if task.revision > 1 or task.attempt > 1 or task.failures]
    known = histories(again, using=using) if again else {}
    parents = results_before(tasks, using=using)
    return [job_of(task, now, known.get(task.occurrence)) | parents.get(task.pk, {}) for task in tasks]


def results_before(tasks: Sequence[ScheduledTask], *, using: str) -> dict[UUID, dict[str, Any]]:
    """
    What jobs of workflows are told beside: the results of the steps before them, in their order; a callback has all before it.
    Two statements at most; none if none of these jobs is in a workflow.
    """
    found: dict[UUID, dict[str, Any]] = {}
    before = {task.pk: _steps_before(task) for task in tasks if PART_OF in task.payload}
    wanted = {task.payload[PART_OF]["id"] for task in tasks if before.get(task.pk)}
    made, results = defaultdict[str, dict[int, UUID]](dict), {}
    if wanted:
        steps = WorkflowJob.objects.using(using).filter(workflow__in=wanted, role=Role.STEP)
        for workflow, place, job in steps.values_list("workflow", "place", "job"):
            made[str(workflow)][place] = job
        rows = ScheduledTask.objects.using(using).filter(
            pk__in=[job for jobs in made.values() for job in jobs.values()]
        )
        results = dict(rows.filter(state=State.COMPLETED).values_list("pk", "result"))
    for task in tasks:
        if (count := before.get(task.pk)) is not None:
            part = task.payload[PART_OF]
            jobs = sorted((place, job) for place, job in made[part["id"]].items() if place < count)
            found[task.pk] = {"workflow_id": part["id"], "parent_results": [results.get(job) for _place, job in jobs]}
    return found


def _steps_before(task: ScheduledTask) -> int:
    part = task.payload[PART_OF]
    if part["role"] != Role.STEP:
        return sys.maxsize
    return int(part["place"]) if part["in_order"] else 0


def histories(tasks: Iterable[ScheduledTask], *, using: str) -> dict[str, History]:
    """What the logs of all revisions of these jobs tell, by their ids. One statement."""
    tasks = list(tasks)
    entries = LogEntry.objects.using(using).filter(
        task__run=None,
        task__entity_label="",
        task__entity_id="",
        task__task_key__in={task.task_key for task in tasks},
        task__occurrence__in={task.occurrence for task in tasks},
    )
    found: dict[str, History] = defaultdict(History)
    for entry in entries.select_related("task").order_by("task__revision", "seq"):
        _take(entry, found[entry.task.occurrence])
    return found


def _take(entry: LogEntry, history: History) -> None:
    if history.created_at is None:
        history.created_at = entry.task.created_at
    if entry.from_state != State.ACTIVE:
        return
    if error := entry.detail.get("error"):
        history.errors.append(told_error(error, entry))
    history.delay_ms = entry.detail.get("retry_delay_ms")


def told_error(error: Mapping[str, Any], entry: LogEntry) -> dict[str, Any]:
    """An error as its worker told it, with the attempt that it ended."""
    said = error.get("ojs") or {"code": error["class"], "message": error["message"]}
    kind = {"type": error["class"]} if "type" not in said else {}
    return {**said, **kind, "attempt": entry.attempt, "occurred_at": told(entry.at)}


def job_of(task: ScheduledTask, now: datetime, history: History | None = None) -> dict[str, Any]:
    """Write one job; ``history`` is needed if it was tried before."""
    payload, options = task.payload, task.payload.get("options", {})
    state, history = state_of(task, now), history or History()
    created = history.created_at or task.created_at
    job: dict[str, Any] = {
        **payload.get("extra", {}),
        "specversion": "1.0",
        "id": task.occurrence,
        "type": payload.get("type", ""),
        "queue": task.queue,
        "state": state,
        "args": payload.get("args", []),
        "meta": payload.get("meta", {}),
        "priority": -task.priority,
        "attempt": task.attempt,
        "max_attempts": task.max_attempts,
        "created_at": told(created),
        "enqueued_at": told(task.created_at),
    }
    job |= {name: options[name] for name in _ECHOED if name in options}
    if others := {name: value for name, value in options.items() if name not in _KNOWN}:
        job["options"] = others
    return job | _times(task, state) | _outcome(task, state, history)


def _times(task: ScheduledTask, state: str) -> dict[str, Any]:
    found: dict[str, datetime | None] = {"expires_at": task.expires_at}
    if task.nominal_at != task.created_at and task.nominal_at < NEVER and task.revision == 1:
        found["scheduled_at"] = task.nominal_at
    if state != State.AVAILABLE and task.attempt:
        found["started_at"] = task.started_at
    if state == State.RETRYABLE:
        found["next_attempt_at"] = task.scheduled_at
    if state == State.CANCELLED:
        found["cancelled_at"] = task.finished_at
    elif task.reason_code != ReasonCode.EXPIRED:
        found["completed_at"] = task.finished_at
    if state == State.DISCARDED:
        found["discarded_at"] = task.finished_at or task.expires_at
    return {name: told(at) for name, at in found.items() if at is not None}


def _outcome(task: ScheduledTask, state: str, history: History) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if history.errors:
        found["errors"] = history.errors
        if state != State.COMPLETED:
            found["error"] = history.errors[-1]
    if history.delay_ms is not None:
        found["retry_delay_ms"] = history.delay_ms
    if state == State.COMPLETED and task.result is not None:
        found["result"] = task.result
    return found


_ECHOED: Final = ("timeout", "timeout_ms", "visibility_timeout", "visibility_timeout_ms", "retry", "unique", "tags")
_KNOWN: Final = frozenset({*_ECHOED, "queue", "priority", "delay_until", "scheduled_at", "expires_at", "pending"})


def is_buried(task: ScheduledTask) -> bool:
    """Whether its policy wants it kept as a dead letter once it is given up."""
    return policy_of(task.payload.get("options", {}).get("retry")).on_exhaustion == "dead_letter"


def until(task: ScheduledTask, timeout: timedelta | None, now: datetime) -> timedelta | None:
    """How long the attempt may still take; None: there is no limit."""
    return None if timeout is None or task.started_at is None else task.started_at + timeout - now
