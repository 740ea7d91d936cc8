"""What the addresses of workers answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.ojs import jobs, outcomes
from timeline.ojs.answers import Answer, Asking
from timeline.ojs.conf import get_settings
from timeline.ojs.errors import Invalid
from timeline.ojs.fetch import Wanted, fetch
from timeline.ojs.values import (
    MAX_MS,
    an_array,
    an_object,
    flag,
    given,
    job_id,
    milliseconds,
    queue_name,
    text,
    told,
    whole,
)
from timeline.ojs.wire import jobs_of, state_of

MAX_QUEUES: Final = 50
MAX_WORKER: Final = 100
MAX_ACTIVE: Final = 1000
DIRECTIVES: Final = frozenset({"quiet", "terminate"})


def _lease(body: dict[str, Any]) -> timedelta | None:
    if body.get("visibility_timeout_ms") is None:
        return None
    return timedelta(milliseconds=whole("visibility_timeout_ms", body["visibility_timeout_ms"], 1, MAX_MS))


def _worker(body: dict[str, Any]) -> str | None:
    return None if body.get("worker_id") is None else text("worker_id", body["worker_id"], MAX_WORKER)


def fetch_jobs(asking: Asking) -> Answer:
    """Let a worker take jobs."""
    body = asking.body
    asked = an_array("queues", given(body, "queues"))
    if not 0 < len(asked) <= MAX_QUEUES:
        raise Invalid("queues", f"has to have 1 to {MAX_QUEUES} names.")
    wanted = Wanted(
        queues=[queue_name(f"queues[{place}]", name) for place, name in enumerate(asked)],
        count=min(whole("count", body.get("count", 1), 1, 10**6), get_settings().MAX_FETCH),
        worker=_worker(body) or "",
        lease=_lease(body),
    )
    rows = asking.caller.rows(using=asking.using)
    taken = fetch(wanted, rows, now=asking.now, using=asking.using)
    return Answer({"jobs": jobs_of(taken, asking.now, using=asking.using)})


def _reported(asking: Asking) -> tuple[ScheduledTask, outcomes.Report]:
    body = asking.body
    key = job_id("job_id", given(body, "job_id"))
    attempt = body.get("attempt")
    report = outcomes.Report(
        worker=_worker(body), attempt=None if attempt is None else whole("attempt", attempt, 1, 2**31 - 1)
    )
    return jobs.find(key, asking.caller.narrowed(using=asking.using), using=asking.using), report


def _ended(task: ScheduledTask, asking: Asking) -> dict[str, Any]:
    return {
        "id": task.occurrence,
        "job_id": task.occurrence,
        "state": state_of(task, asking.now),
        "attempt": task.attempt,
        "max_attempts": task.max_attempts,
        **({"completed_at": told(task.finished_at)} if task.finished_at else {}),
    }


def ack(asking: Asking) -> Answer:
    """An attempt has succeeded."""
    task, report = _reported(asking)
    task = outcomes.acknowledge(task, report, asking.body.get("result"), now=asking.now, using=asking.using)
    return Answer({"acknowledged": True, **_ended(task, asking)})


def nack(asking: Asking) -> Answer:
    """An attempt has failed, or is given back."""
    body = asking.body
    error = an_object("error", given(body, "error"))
    if "code" not in error and "type" not in error:
        raise Invalid("error.code", "is missing.", validation="required")
    for name in ("code", "type"):
        if name in error:
            text(f"error.{name}", error[name], 200)
    text("error.message", error.get("message"), 100_000, least=0)
    if error.get("retryable") is not None:
        flag("error.retryable", error["retryable"])
    outcomes.check_error(error)
    task, report = _reported(asking)
    if flag("requeue", body.get("requeue", False)):
        task = outcomes.give_back(task, report, now=asking.now, using=asking.using)
        return Answer(_ended(task, asking))
    task = outcomes.fail(task, report, error, now=asking.now, using=asking.using)
    answer = _ended(task, asking)
    if task.state == State.DISCARDED and task.finished_at is not None:
        answer["discarded_at"] = told(task.finished_at)
    else:
        delay = task.scheduled_at - asking.now
        answer |= {"next_attempt_at": told(task.scheduled_at), "retry_delay_ms": milliseconds(delay)}
    return Answer(answer)


def heartbeat(asking: Asking) -> Answer:
    """A worker is there: its jobs stay its own for longer."""
    body = asking.body
    worker = text("worker_id", given(body, "worker_id"), MAX_WORKER)
    asked = an_array("active_jobs", body.get("active_jobs", []))
    if len(asked) > MAX_ACTIVE:
        raise Invalid("active_jobs", f"has to have {MAX_ACTIVE} ids at most.")
    ids = [job_id(f"active_jobs[{place}]", key) for place, key in enumerate(asked)]
    seen = asking.caller.narrowed(using=asking.using)
    extended = outcomes.extend(ids, worker, _lease(body), seen, now=asking.now, using=asking.using)
    kept = {UUID(task.occurrence) for task in extended}
    return Answer(
        {
            "state": _directive(extended),
            "jobs_extended": [str(key) for key in ids if key in kept],
            "jobs_lost": [str(key) for key in ids if key not in kept],
            "server_time": told(asking.now),
        }
    )


def _directive(held: list[ScheduledTask]) -> str:
    """What the worker is told to do: to go on; or, where tests want it, what one of its jobs says."""
    if get_settings().TEST_DIRECTIVES:
        for task in held:
            metadata = task.payload.get("options", {}).get("metadata")
            said = metadata.get("test_directive") if isinstance(metadata, dict) else None
            if isinstance(said, str) and said in DIRECTIVES:
                return said
    return "running"
