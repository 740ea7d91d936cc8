"""How attempts end, as workers outside tell it, or as their silence does."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeline.clocks import MachineTime
from timeline.engine.failures import MAX_MESSAGE, MAX_TRACEBACK, fingerprint
from timeline.engine.finalize import settle
from timeline.exceptions import InvalidInput
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.likeness import constant
from timeline.models import ScheduledTask
from timeline.ojs.conf import get_settings
from timeline.ojs.envelope import lease_of, timeout_of
from timeline.ojs.errors import Conflict, Invalid, Refused
from timeline.ojs.jobs import latest
from timeline.ojs.retry import Policy, policy_of
from timeline.ojs.values import milliseconds
from timeline.ojs.wire import state_of, until
from timeline.payloads import check_json
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

GIVEN_UP: Final = 100  # At a time.
LOST: Final = "visibility_timeout"
TIMEOUT: Final = "timeout"
_DONE: Final = Reason(ReasonCode.DONE)
_GIVEN_BACK: Final = Reason(ReasonCode.RELEASED)


@dataclass(frozen=True, slots=True)
class Report:
    """
    What a worker tells with an outcome, beside the id of the job.

    Args:
        worker: Who tells it; None: it does not say.
        attempt: Which attempt it is about; None: it does not say.
    """

    worker: str | None = None
    attempt: int | None = None


def acknowledge(
    task: ScheduledTask, report: Report, result: object = None, *, now: datetime, using: str
) -> ScheduledTask:
    """Record that an attempt has succeeded."""
    _check_owner(task, report, now)
    try:
        check_json("result", result)
    except InvalidInput as error:
        raise Invalid("result", str(error)) from None
    text = None if result is None else json.dumps(result, ensure_ascii=False)
    return _settled(Write(task=task, triggers=(Trigger.COMPLETE,), result=text, reason=_DONE), now, using)


def fail(task: ScheduledTask, report: Report, error: Mapping[str, Any], *, now: datetime, using: str) -> ScheduledTask:
    """Record that an attempt has failed: it is tried again later, or given up."""
    _check_owner(task, report, now)
    return _settled(failure(task, error, now), now, using)


def give_back(task: ScheduledTask, report: Report, *, now: datetime, using: str) -> ScheduledTask:
    """Let another worker have a job at once: the attempt counts as no failure."""
    _check_owner(task, report, now)
    with atomic(using=using):
        released = Write(task=task, triggers=(Trigger.RETRY,), scheduled_at=now, reason=_GIVEN_BACK)
        task = _settled(released, now, using)
        [task] = apply([Write(task=task, triggers=(Trigger.DUE,))], now=now, using=using)
    return task


def failure(task: ScheduledTask, error: Mapping[str, Any], now: datetime) -> Write:
    """What a failed attempt leads to, by the policy of the job."""
    policy = policy_of(task.payload.get("options", {}).get("retry"))
    is_final = error.get("retryable") is False or any(policy.ends(name) for name in _names(error))
    return _failed(task, dict(error), policy, now, is_final=is_final, code=ReasonCode.ERROR)


def lost(task: ScheduledTask, now: datetime) -> Write:
    """What becomes of a job whose worker let its lease run out, or took longer than it may: it is available again."""
    policy, options = policy_of(task.payload.get("options", {}).get("retry")), task.payload.get("options", {})
    left = until(task, timeout_of(options), now)
    if left is not None and left <= timedelta(0):
        error = {"code": TIMEOUT, "type": TIMEOUT, "message": "The attempt took longer than it may.", "retryable": True}
        return _failed(task, error, policy, now, is_final=False, code=ReasonCode.TIMEOUT)
    error = {"code": LOST, "type": LOST, "message": "Its worker let the lease run out.", "retryable": True}
    return _failed(task, error, policy, now, is_final=False, code=ReasonCode.WORKER_LOST, at_once=True)


def _failed(
    task: ScheduledTask,
    error: dict[str, Any],
    policy: Policy,
    now: datetime,
    *,
    is_final: bool,
    code: ReasonCode,
    at_once: bool = False,
) -> Write:
    kind, message = _names(error)[0], str(error.get("message", ""))
    failures = task.failures + 1
    evidence: dict[str, Any] = {"worker": task.worker} if task.worker else {}
    trigger, due = Trigger.DISCARD, None
    if not is_final and failures < task.max_attempts:
        delay = timedelta(0) if at_once else policy.delay(failures)
        trigger, due = Trigger.RETRY, now + delay
        evidence["retry_delay_ms"] = milliseconds(delay)
    told: dict[str, Any] = {
        "class": kind,
        "message": message[:MAX_MESSAGE],
        "traceback": _traceback(error),
        "ojs": {**error, "message": message[:MAX_MESSAGE]},
    }
    return Write(
        task=task,
        triggers=(trigger,),
        scheduled_at=due,
        reason=Reason(code, message),
        error=told,
        fingerprint=fingerprint(task.task_key, code=f"{kind}\x1f{constant(message)}"),
        failures=1,
        evidence=evidence,
    )


def _names(error: Mapping[str, Any]) -> list[str]:
    """What an error is called: by its class, its type, its code."""
    details = error.get("details")
    given = [details.get("error_class") if isinstance(details, dict) else None, error.get("type"), error.get("code")]
    return [name for name in given if isinstance(name, str) and name] or ["error"]


def _traceback(error: Mapping[str, Any]) -> str:
    details = error.get("details")
    found = [error.get("stack_trace"), error.get("backtrace")]
    found += [details.get("stack_trace"), details.get("backtrace")] if isinstance(details, dict) else []
    for trace in found:
        text = "\n".join(map(str, trace)) if isinstance(trace, list) else trace
        if isinstance(text, str):
            return text[-MAX_TRACEBACK:]
    return ""


def _check_owner(task: ScheduledTask, report: Report, now: datetime) -> None:
    """Refuse what is told of an attempt that is over, or that is another worker's."""
    state = state_of(task, now)
    if task.state != State.ACTIVE:
        raise _conflict(task, f"The job is {state}, not active.", state)
    if report.worker is not None and task.worker and report.worker != task.worker:
        raise _conflict(task, "Another worker has the job.", state)
    if report.attempt is not None and report.attempt != task.attempt:
        raise _conflict(task, f"The job is at attempt {task.attempt}, not {report.attempt}.", state)


def _conflict(task: ScheduledTask, said: str, state: str) -> Conflict:
    return Conflict(said, job_id=task.occurrence, current_state=state, expected_state=State.ACTIVE.value)


def _settled(write: Write, now: datetime, using: str) -> ScheduledTask:
    with atomic(using=using):  # What follows in a workflow is made with it.
        done = settle([write], now=now, using=using)
    if not done:
        raise Conflict("The job has changed meanwhile.", job_id=write.task.occurrence)
    return done[0]


def give_up_lost(rows: ScheduledTaskQuerySet, *, now: datetime, using: str, wait: bool = False) -> int:
    """
    Give up attempts among these jobs whose lease has run out, as the poller does, so that nobody waits for it; gives how many.
    One statement where there are none. Rows that somebody else has locked are left to them; with ``wait``, they are waited for.
    """
    with atomic(using=using):
        tasks = list(rows.given_up().filter(state=State.ACTIVE).locked(skip_locked=not wait)[:GIVEN_UP])
        writes = []
        for task in tasks:
            with suppress(Refused):  # Its row cannot be read: the poller gives it up.
                writes.append(lost(task, now))
        return len(settle(writes, now=now, using=using))


def extend(
    ids: Sequence[UUID],
    worker: str,
    length: timedelta | None,
    seen: ScheduledTaskQuerySet | None = None,
    *,
    now: datetime,
    using: str,
) -> list[ScheduledTask]:
    """
    Extend the leases of a worker's jobs, never beyond what an attempt may take. One statement for each length. Gives the jobs
    that are still its own; a lease that has run out but that nobody has noticed is extended, too. So is one that
    somebody has locked for a moment: by the next heartbeat. ``seen``: the jobs that the worker may know of; None: all.
    """
    held = [task for task in latest(ids, using=using).values() if task.state == State.ACTIVE and task.worker == worker]
    if seen is not None and held:
        known = set(seen.filter(pk__in=[task.pk for task in held]).values_list("pk", flat=True))
        held = [task for task in held if task.pk in known]
    alike: dict[timedelta, list[ScheduledTask]] = defaultdict(list)
    for task in held:
        options = task.payload.get("options", {})
        longest = length or lease_of(options) or get_settings().LEASE
        left = until(task, timeout_of(options), now)
        alike[longest if left is None else min(longest, left)].append(task)
    extended = []
    for lease, tasks in alike.items():
        if lease <= timedelta(0):
            continue
        with atomic(using=using):
            rows = ScheduledTask.objects.using(using).filter(
                pk__in=[task.pk for task in tasks], state=State.ACTIVE, worker=worker
            )
            ours = {row.pk: row.attempt for row in rows.by_id().only("pk", "attempt").locked(skip_locked=True)}
            fitting = [task for task in tasks if ours.get(task.pk) == task.attempt]
            rows.filter(pk__in=[task.pk for task in fitting]).update(lease_expires_at=MachineTime(lease))
            extended += fitting
            if missed := [task for task in tasks if task.pk not in ours]:
                still = dict(rows.filter(pk__in=[task.pk for task in missed]).values_list("pk", "attempt"))
                extended += [task for task in missed if still.get(task.pk) == task.attempt]
    return extended


def check_error(error: Mapping[str, Any]) -> None:
    """Refuse an error that a row cannot keep: ``Invalid``."""
    try:
        check_json("error", error)
    except InvalidInput as problem:
        raise Invalid("error", str(problem)) from None
