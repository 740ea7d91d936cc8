"""What the addresses of jobs answer, and those that tell of the server itself."""

from __future__ import annotations

from time import monotonic
from typing import Any, Final

from django.db import connections

import timeline
from timeline.features import FEATURES
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask
from timeline.ojs import jobs
from timeline.ojs.answers import VERSION, Answer, Asking
from timeline.ojs.conf import get_settings
from timeline.ojs.envelope import read_job
from timeline.ojs.errors import Invalid
from timeline.ojs.outcomes import give_up_lost
from timeline.ojs.values import an_array, given, job_id, told
from timeline.ojs.wire import jobs_of, state_of

LEVEL: Final = 3
_BEGUN: Final = monotonic()
_CALLED_OFF: Final = "Cancelled over HTTP."


def manifest(_asking: Asking) -> Answer:
    """What there is, for clients that have not asked yet."""
    return Answer(
        {
            "ojs_version": VERSION,
            "specversion": VERSION,
            "implementation": {"name": "django-entity-timeline", "version": timeline.__version__, "language": "python"},
            "conformance_level": LEVEL,
            "protocols": ["http"],
            "backend": connections[jobs.database()].display_name.lower(),
            "capabilities": {
                "batch_enqueue": True,
                "cron_jobs": True,
                "dead_letter": True,
                "delayed_jobs": True,
                "job_ttl": True,
                "pause_resume": True,
                "priority_queues": True,
                "rate_limiting": "rates" in FEATURES,
                "schema_validation": False,
                "unique_jobs": {"strength": "strong", "mechanism": "a locked row for each key"},
                "workflows": True,
            },
            "extensions": [],
            "endpoints": {"base_url": "/ojs/v1", "manifest": "/ojs/manifest", "health": "/ojs/v1/health"},
        }
    )


def health(_asking: Asking) -> Answer:
    """Whether the database answers."""
    using, begun = jobs.database(), monotonic()
    backend: dict[str, Any] = {"type": connections[using].display_name.lower()}
    try:
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception as error:  # noqa: BLE001 (whatever a driver raises, the database is not there)
        told_error = {**backend, "status": "disconnected", "error": type(error).__name__}
        return Answer(_health("degraded", told_error), status=503)
    took = round((monotonic() - begun) * 1000)
    return Answer(_health("ok", {**backend, "status": "connected", "latency_ms": took}))


def _health(status: str, backend: dict[str, Any]) -> dict[str, Any]:
    return {"status": status, "version": VERSION, "uptime_seconds": int(monotonic() - _BEGUN), "backend": backend}


def one(asking: Asking, task: ScheduledTask, **more: Any) -> dict[str, Any]:
    [job] = jobs_of([task], asking.now, using=asking.using)
    return {"job": {**job, **more}}


def _found(asking: Asking, key: str) -> ScheduledTask:
    return jobs.find(job_id("id", key), asking.caller.narrowed(using=asking.using), using=asking.using)


def enqueue(asking: Asking) -> Answer:
    """Make one job."""
    seen = asking.caller.narrowed(using=asking.using)
    new = [read_job(asking.body, asking.now)]
    asking.caller.check_queues({job.queue for job in new})
    made = jobs.enqueue(new, now=asking.now, using=asking.using, seen=seen)
    [task] = made.tasks
    location = {"Location": f"/ojs/v1/jobs/{task.occurrence}"}
    if made.there:
        return Answer({**one(asking, task), "deduplicated": True}, 200, location)
    return Answer(one(asking, task), 201, location)


def enqueue_batch(asking: Asking) -> Answer:
    """Make many jobs, or none."""
    asked = an_array("jobs", given(asking.body, "jobs"))
    if not 0 < len(asked) <= get_settings().MAX_BATCH:
        raise Invalid("jobs", f"has to have 1 to {get_settings().MAX_BATCH} jobs.")
    new = [read_job(each, asking.now, at=f"jobs[{place}].") for place, each in enumerate(asked)]
    asking.caller.check_queues({job.queue for job in new})
    made = jobs.enqueue(new, now=asking.now, using=asking.using, seen=asking.caller.narrowed(using=asking.using))
    told_jobs = jobs_of(made.tasks, asking.now, using=asking.using)
    return Answer({"jobs": told_jobs, "count": len(told_jobs), "deduplicated": [str(key) for key in made.there]}, 201)


def get_job(asking: Asking, key: str) -> Answer:
    """Tell of one job. If its worker has let the lease run out, that is seen now, before a poller does."""
    task = _found(asking, key)
    if task.state == State.ACTIVE:
        give_up_lost(
            jobs.all_jobs(using=asking.using).filter(pk=task.pk), now=asking.now, using=asking.using, wait=True
        )
        task = _found(asking, key)
    return Answer(one(asking, task))


def cancel_job(asking: Asking, key: str) -> Answer:
    """Call a job off, also one that runs: its worker learns it when it reports, or by its next heartbeat."""
    reason = Reason.operator(_CALLED_OFF, asking.caller.actor)
    task = _found(asking, key)
    before = state_of(task, asking.now)
    task = jobs.call_off(task, reason, now=asking.now, using=asking.using)
    return Answer(one(asking, task, previous_state=before))


def activate_job(asking: Asking, key: str) -> Answer:
    """Let a pending job be fetched."""
    task = jobs.activate(_found(asking, key), now=asking.now, using=asking.using)
    return Answer(one(asking, task, activated_at=told(asking.now), previous_state="pending"))
