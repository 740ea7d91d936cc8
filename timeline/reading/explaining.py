"""Explain: the story of a task in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from timeline.conf import get_settings
from timeline.exceptions import UnknownTask
from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.masking import masked, masked_entry
from timeline.registry import registry
from timeline.timing import in_utc

_WHY = {
    ReasonCode.EXIT: "the run ended by the exit “{text}”",
    ReasonCode.GUARD: "its guard said no ({text})",
    ReasonCode.HANDLER: "its handler decided so: {text}",
    ReasonCode.OPERATOR: "{text}",
    ReasonCode.SUPERSEDED: "{text}",
    ReasonCode.MOVED: "it was moved: {text}",
    ReasonCode.PREDECESSOR: "{text}",
    ReasonCode.EXPIRED: "{text}",
    ReasonCode.ENTITY_GONE: "{text}",
    ReasonCode.DEFINITION: "{text}",
    ReasonCode.WORKER_LOST: "{text}",
    ReasonCode.RELEASED: "{text}",
    ReasonCode.ERROR: "{text}",
    ReasonCode.RETRY_AFTER: "{text}",
    ReasonCode.SHADOW: "in shadow: {text}",
}

_REST = {
    State.AVAILABLE: "It is due and waits for a worker.",
    State.PENDING: "It is on its way to a worker.",
    State.ACTIVE: "A worker runs it right now.",
}


def explain(task: ScheduledTask, *, now: datetime, using: str, payload: bool = True) -> str:
    """
    Tell the story of a task: why it is there, when it is or was due, what happened to it, and what comes next.

    Args:
        task: Any, in any state.
        now: Story time.
        using: Database alias the task lives in.
        payload: Whether to tell results and errors, which not everybody may read.

    Returns:
        Sentences, one a line. Times are in UTC.
    """
    log = list(LogEntry.objects.using(using).filter(task=task).order_by("seq"))
    if not payload:
        task, log = masked(task), [masked_entry(entry) for entry in log]
    return "\n".join([_origin(task), _schedule(task), *_life(task, log), *outlook(task, now=now, using=using)])


def why(task: ScheduledTask) -> str:
    """Say in words why a task is where it is; empty where its state says it all."""
    actor = f", by {task.actor}" if task.actor else ""
    template = _WHY.get(ReasonCode(task.reason_code)) if task.reason_code else None
    return f"{template.format(text=task.reason or task.reason_code)}{actor}" if template else ""


def _origin(task: ScheduledTask) -> str:
    revision = f" (revision {task.revision})" if task.revision > 1 else ""
    what = f"{task.task_key} for {task.entity_ref}{revision}"
    if task.run is None:
        return f"{what} was scheduled ad hoc on {in_utc(task.created_at)}{_by_event(task)}."
    started = f"the run of {task.run.timeline} that started on {in_utc(task.run.started_at)}{_by_event(task)}"
    return f"{what} belongs to {started}."


def _by_event(task: ScheduledTask) -> str:
    return f" with the event {task.cause.name}" if task.cause else ""


def _schedule(task: ScheduledTask) -> str:
    rule = _rule(task)
    anchor = f": {rule}" if rule else ""
    if task.anchor.startswith("field:") and task.anchor_value:
        anchor += f" ({task.anchor.removeprefix('field:')} was {in_utc(task.anchor_value)})"
    moved = (
        f", moved from {in_utc(task.nominal_at)}" if task.scheduled_at != task.nominal_at and not task.attempt else ""
    )
    verb = "was due" if task.state in FINAL else "is due"
    return f"It {verb} on {in_utc(task.scheduled_at)}{moved}{anchor}."


def _rule(task: ScheduledTask) -> str:
    try:
        declared = registry.task(task.task_key)[1]
    except UnknownTask:
        return "no handler of this key is known any more"
    return declared.when.describe() if declared.when and task.run_id else ""


def _life(task: ScheduledTask, log: list[LogEntry]) -> Iterator[str]:
    for entry in log:
        if entry.to_state == State.ACTIVE:
            worker = f" by {task.worker}" if task.worker and entry.attempt == task.attempt else ""
            yield f"Attempt {entry.attempt} started on {in_utc(entry.at)}{worker}."
        elif entry.from_state == entry.to_state:
            yield from _changed(entry)
        elif entry.to_state == State.RETRYABLE:
            yield f"Attempt {entry.attempt} ended on {in_utc(entry.at)} without success: {_reason(entry)}."
        elif entry.to_state in FINAL:
            yield _ending(task, entry)


def _changed(entry: LogEntry) -> Iterator[str]:
    if at := entry.detail.get("scheduled_at"):
        before = in_utc(datetime.fromisoformat(entry.detail["scheduled_at_before"]))
        yield f"On {in_utc(entry.at)} it was moved from {before} to {in_utc(datetime.fromisoformat(at))}: {_reason(entry)}."
    elif "resend" in entry.detail:
        yield f"On {in_utc(entry.at)} its message was sent again."


def _ending(task: ScheduledTask, entry: LogEntry) -> str:
    if entry.reason_code == ReasonCode.SHADOW:
        return f"It would have run on {in_utc(entry.at)}: its timeline was in shadow, so its handler was not entered."
    if entry.to_state == State.COMPLETED:
        result = f" Its result: {task.result}." if task.result is not None else ""
        return f"It was completed on {in_utc(entry.at)}.{result}"
    return f"It was {entry.to_state} on {in_utc(entry.at)}: {_reason(entry)}."


def _reason(entry: LogEntry) -> str:
    actor = f", by {entry.actor}" if entry.actor else ""
    template = _WHY.get(ReasonCode(entry.reason_code), "{text}") if entry.reason_code else "no reason given"
    said = template.format(text=entry.reason or entry.reason_code)
    error = entry.detail.get("error")
    return f"{error['class']}: {error['message'] or 'no message'}" if error else f"{said}{actor}"


def outlook(task: ScheduledTask, *, now: datetime, using: str) -> Iterator[str]:
    """Say what a task waits for, and what comes after it; arguments as above."""
    if task.state in FINAL:
        yield from _after_the_end(task, using)
        return
    if task.scheduled_at > now:
        yield f"It waits for its time, {in_utc(task.scheduled_at)}."
    elif task.state in _REST:
        yield _REST[State(task.state)]
    else:
        yield "Its time has come; the next poll takes it."
    if task.state != State.ACTIVE and task.scheduled_at + get_settings().overdue_after < now:
        yield "It is overdue: is a worker running?"
    if registry.in_shadow(task.task_key):
        yield "Its timeline is in shadow: as long as that is so, its handler is not entered."
    for follower in _followers(task):
        yield f"If it completes, {follower} follows."


def _after_the_end(task: ScheduledTask, using: str) -> Iterator[str]:
    later = ScheduledTask.objects.using(using).filter(previous=task).order_by("revision").first()
    if later is not None:
        yield f"Its next revision, {later.pk}, is {later.state}, due on {in_utc(later.scheduled_at)}."
    elif task.state != State.COMPLETED:
        for follower in _followers(task):
            yield f"So {follower}, which follows when it completes, has no row."


def _followers(task: ScheduledTask) -> list[str]:
    try:
        definition, declared = registry.task(task.task_key)
    except UnknownTask:
        return []
    return [
        definition.task_key(name)
        for name, other in definition.tasks.items()
        if task.run_id and other.when and other.when.predecessor_name == declared.name
    ]
