"""What the addresses of workflows answer."""

from __future__ import annotations

from typing import Any, Final

from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.ojs import workflows
from timeline.ojs.answers import Answer, Asking
from timeline.ojs.jobs import latest
from timeline.ojs.models import Role, Workflow, WorkflowJob, WorkflowState
from timeline.ojs.values import job_id, told
from timeline.ojs.wire import jobs_of

_CALLED_OFF: Final = "Its workflow was cancelled over HTTP."
_STATES: Final = {"active": "active", "completed": "completed", "cancelled": "cancelled", "discarded": "failed"}
_TIMES: Final[tuple[str, ...]] = ("started_at", "completed_at", "result")


def create_workflow(asking: Asking) -> Answer:
    """Make a workflow, and let its first jobs be fetched."""
    workflow, jobs = workflows.read_workflow(asking.body, asking.now)
    asking.caller.check_queues({job.queue for job in jobs})
    workflow = workflows.create(workflow, now=asking.now, using=asking.using)
    return Answer({"workflow": _told(workflow, asking)}, 201, {"Location": f"/ojs/v1/workflows/{workflow.pk}"})


def get_workflow(asking: Asking, key: str) -> Answer:
    """Tell of a workflow and of each of its jobs. What has expired is seen now, before somebody fetches from its queue."""
    workflow = _found(asking, key)
    if workflow.ahead and workflows.call_off_expired(workflow, now=asking.now, using=asking.using):
        workflow.refresh_from_db(using=asking.using)
    return Answer({"workflow": _told(workflow, asking)})


def cancel_workflow(asking: Asking, key: str) -> Answer:
    """Cancel a workflow: what nobody has taken yet, and what would follow."""
    reason = Reason.operator(_CALLED_OFF, asking.caller.actor)
    workflow, count = workflows.cancel_workflow(_found(asking, key), reason, now=asking.now, using=asking.using)
    told_workflow = _told(workflow, asking)
    cancelled = count + sum(part["job_id"] is None for part in told_workflow[workflows.LISTS[workflow.kind]])
    counts = {"steps_cancelled": cancelled, "steps_already_completed": workflow.completed}
    return Answer({"workflow": {**told_workflow, **counts}})


def _found(asking: Asking, key: str) -> Workflow:
    seen = asking.caller.narrowed(using=asking.using)
    return workflows.find_workflow(job_id("id", key), seen, using=asking.using)


def _told(workflow: Workflow, asking: Asking) -> dict[str, Any]:
    """A workflow as the specification writes it, with all its jobs. Four statements at most."""
    made = {(job.role, job.place): job for job in WorkflowJob.objects.using(asking.using).filter(workflow=workflow)}
    rows = latest([job.job for job in made.values()], using=asking.using)
    jobs = {job["id"]: job for job in jobs_of(list(rows.values()), asking.now, using=asking.using)}
    field = workflows.LISTS[workflow.kind]
    steps = [
        {"index": place, **_part(workflow, body, made.get((Role.STEP, place)), jobs)}
        for place, body in enumerate(workflow.steps)
    ]
    callbacks = {
        str(role): _part(workflow, workflow.callbacks[role], made.get((role, 0)), jobs)
        for role in workflows.CALLBACKS
        if role in workflow.callbacks
    }
    return {
        **workflow.given,
        "id": str(workflow.pk),
        "type": workflow.kind,
        **({"name": workflow.name} if workflow.name else {}),
        "state": workflow.state,
        f"{field}_total": len(steps),
        f"{field}_completed": workflow.completed,
        f"{field}_failed": workflow.failed,
        field: steps,
        **({"callbacks": callbacks} if callbacks else {}),
        **_errors(steps, callbacks, jobs),
        "created_at": told(workflow.created_at),
        "metadata": _metadata(workflow, list(rows.values())),
        **_ended(workflow),
    }


def _part(
    workflow: Workflow, body: dict[str, Any], made: WorkflowJob | None, jobs: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    job = jobs.get(str(made.job)) if made is not None else None
    if made is None:
        state = "waiting" if workflow.state == WorkflowState.RUNNING else "cancelled"
    elif job is None:  # Its row was pruned.
        state = "completed" if made.has_ended else "pending"
    else:
        state = _STATES.get(job["state"], "pending")
    times = {} if job is None else {name: job[name] for name in _TIMES if name in job}
    return {"type": body["type"], "state": state, "job_id": None if made is None else str(made.job), **times}


def _errors(
    steps: list[dict[str, Any]], callbacks: dict[str, dict[str, Any]], jobs: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """What is told of the jobs that have failed; nothing if none has."""
    failed = [part for part in [*steps, *callbacks.values()] if part["state"] == "failed"]
    if not failed:
        return {}
    errors = []
    for part in failed:
        error = jobs[part["job_id"]].get("error", {"code": "expired", "message": "Its time was over."})
        errors.append({"attempt": jobs[part["job_id"]]["attempt"], **error, "job_id": part["job_id"]})
    about = {"failed_job_ids": [part["job_id"] for part in failed], "errors": errors}
    first = next((part["index"] for part in steps if part["state"] == "failed"), None)
    return {**about, **({} if first is None else {"failed_step_index": first})}


def _metadata(workflow: Workflow, rows: list[ScheduledTask]) -> dict[str, Any]:
    started = [row.started_at for row in rows if row.started_at is not None]
    return {
        "created_at": told(workflow.created_at),
        **({"started_at": told(min(started))} if started else {}),
        "job_count": len(workflow.steps),
        "completed_count": workflow.completed,
        "failed_count": workflow.failed,
        **_ended(workflow),
    }


def _ended(workflow: Workflow) -> dict[str, Any]:
    if workflow.finished_at is None:
        return {}
    is_cancelled = workflow.state == WorkflowState.CANCELLED
    return {"cancelled_at" if is_cancelled else "completed_at": told(workflow.finished_at)}
