"""
Workflows: a chain runs its jobs one after the other, a group beside each other, a batch likewise and then calls back.

What follows a job is made in the transaction that ends it, whoever that is: a worker, the poller, an operator.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import router

from timeline.clocks import story_now
from timeline.exceptions import InvalidInput
from timeline.ids import uuid7
from timeline.lifecycle import OPEN, Reason, ReasonCode, State, Trigger
from timeline.models import ScheduledTask
from timeline.ojs.conf import get_settings
from timeline.ojs.envelope import MANAGED, OPTIONS, NewJob, read_job
from timeline.ojs.errors import Conflict, Invalid, NotFound, Refused
from timeline.ojs.jobs import all_jobs, enqueue
from timeline.ojs.kinds import BEGINNING
from timeline.ojs.models import Role, Workflow, WorkflowJob, WorkflowState
from timeline.ojs.values import an_array, an_object, given, text
from timeline.ojs.wire import PART_OF
from timeline.payloads import check_data
from timeline.signals import Ending
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

logger = logging.getLogger("timeline")

CHAIN, GROUP, BATCH = "chain", "group", "batch"
LISTS: Final = {CHAIN: "steps", GROUP: "jobs", BATCH: "jobs"}  # What the jobs of each kind are called.
CALLBACKS: Final = (Role.ON_COMPLETE, Role.ON_SUCCESS, Role.ON_FAILURE)
MAX_NAME: Final = 200
FORGOTTEN: Final = 1000  # At a time.
_OWN: Final = frozenset({"id", "type", "name", "steps", "jobs", "callbacks", "options", "state", "metadata"})


class InvalidWorkflow(Refused):
    """A workflow cannot be made of this."""

    code, kind = "invalid_workflow", "validation_error"


@dataclass(frozen=True, slots=True)
class Part:
    """A job that is to be made for a workflow."""

    workflow: Workflow
    role: str
    place: int
    body: Mapping[str, Any]

    @property
    def where(self) -> str:
        """How errors name it."""
        of_steps = f"{LISTS[self.workflow.kind]}[{self.place}]."
        return of_steps if self.role == Role.STEP else f"callbacks.{self.role}."


def read_workflow(body: Mapping[str, Any], now: datetime) -> tuple[Workflow, list[NewJob]]:
    """
    Read a workflow as a client sends it; gives it, not saved, and all jobs that may come of it.

    Raises:
        InvalidWorkflow: naming in ``validation_errors`` what is wrong.
    """
    try:
        return _read(body, now)
    except Refused as error:
        path = f"$.{error.details.get('field', '')}".rstrip(".")
        problems = [{"path": path, "message": error.message}]
        raise InvalidWorkflow(error.message, **{**error.details, "validation_errors": problems}) from None


def _read(body: Mapping[str, Any], now: datetime) -> tuple[Workflow, list[NewJob]]:
    kind = given(body, "type")
    if not isinstance(kind, str) or kind not in LISTS:
        raise Invalid("type", f"has to be one of {', '.join(LISTS)}.")
    field, usual = LISTS[kind], an_object("options", body.get("options", {}))
    steps = an_array(field, given(body, field))
    if not 0 < len(steps) <= get_settings().MAX_BATCH:
        raise Invalid(field, f"has to have 1 to {get_settings().MAX_BATCH} jobs.")
    callbacks = an_object("callbacks", given(body, "callbacks")) if kind == BATCH else {}
    callbacks = {role: found for role, found in callbacks.items() if found is not None}
    if kind == BATCH and not callbacks:
        raise Invalid("callbacks", f"has to have at least one of {', '.join(CALLBACKS)}.")
    if others := sorted(set(callbacks) - set(CALLBACKS)):
        raise Invalid(f"callbacks.{others[0]!a:.60}", f"is none of {', '.join(CALLBACKS)}.")
    workflow = Workflow(
        id=uuid7(),
        kind=kind,
        name=text("name", body.get("name", ""), MAX_NAME, least=0),
        steps=[_with_usual(step, usual) for step in steps],
        callbacks={role: _with_usual(found, usual) for role, found in callbacks.items()},
        given={key: value for key, value in body.items() if key not in _OWN},
        created_at=now,
    )
    try:
        check_data("The body", workflow.given)
    except InvalidInput as error:
        raise Invalid("The body", str(error)) from None
    parts = [*_steps(workflow, range(len(steps))), *_callbacks(workflow, CALLBACKS)]
    return workflow, [_job_of(part, now) for part in parts]


def _with_usual(step: object, usual: Mapping[str, Any]) -> object:
    """A step, with what the workflow says of all."""
    if not isinstance(step, dict):
        return step
    found = {name: value for name, value in step.items() if name not in MANAGED}
    own, beside = found.get("options", {}), {name: found[name] for name in OPTIONS if name in found}
    return {**found, "options": {**usual, **beside, **own} if isinstance(own, dict) else own}


def _job_of(part: Part, now: datetime) -> NewJob:
    where = part.where
    body = an_object(where.rstrip("."), part.body)
    if any(isinstance(body.get(name), list) for name in ("steps", "jobs")):
        raise Invalid(where.rstrip("."), "is a workflow itself: they are not nested here.")
    if body.get("depends_on"):
        raise Invalid(f"{where}depends_on", "is not known here: take a chain, a group or a batch.")
    job = read_job(body, now, at=where)
    if job.id is not None:
        raise Invalid(f"{where}id", "cannot be given: each job of a workflow gets one when it is made.")
    if job.unique is not None:
        raise Invalid(f"{where}options.unique", "cannot be given: another job might take the place of this one.")
    workflow = part.workflow
    about = {"id": str(workflow.pk), "role": str(part.role), "place": part.place, "in_order": workflow.kind == CHAIN}
    job.payload[PART_OF] = about
    return job


def _steps(workflow: Workflow, places: Iterable[int]) -> Iterator[Part]:
    return (Part(workflow, Role.STEP, place, workflow.steps[place]) for place in places)


def _callbacks(workflow: Workflow, roles: Iterable[str]) -> Iterator[Part]:
    return (Part(workflow, role, 0, workflow.callbacks[role]) for role in roles if role in workflow.callbacks)


def create(workflow: Workflow, *, now: datetime, using: str) -> Workflow:
    """Make a workflow and its first jobs, all or none: a fixed number of statements."""
    first = range(1 if workflow.kind == CHAIN else len(workflow.steps))
    with atomic(using=using):
        workflow.save(using=using, force_insert=True)
        _make([(part, _job_of(part, now)) for part in _steps(workflow, first)], now=now, using=using)
        workflow.save(using=using, update_fields=["ahead"])
    return workflow


def _readable(parts: Iterable[Part], now: datetime) -> Iterator[tuple[Part, NewJob]]:
    """
    Those whose jobs can be made. What was taken may be refused later: after a deploy, or as PostgreSQL writes its numbers in
    full. Then its workflow has failed, and whatever ends the job before it goes on.
    """
    for part in parts:
        try:
            yield part, _job_of(part, now)
        except Refused as error:
            logger.error("What follows in the workflow %s cannot be made: %s", part.workflow.pk, error.message)
            part.workflow.state, part.workflow.finished_at = WorkflowState.FAILED, now


def _make(parts: Sequence[tuple[Part, NewJob]], *, now: datetime, using: str) -> None:
    """Make jobs, and count them in their workflows, which are not saved."""
    if not parts:
        return
    made = enqueue([job for _part, job in parts], now=now, using=using).tasks
    for part, _job in parts:
        part.workflow.ahead += 1
    WorkflowJob.objects.using(using).bulk_create(
        WorkflowJob(job=task.pk, workflow=part.workflow, role=part.role, place=part.place)
        for task, (part, _job) in zip(made, parts, strict=True)
    )


def on_ending(*, using: str, endings: Sequence[Ending], **_extra: Any) -> None:
    """Jobs have ended: make what follows in their workflows, in this transaction. One statement if they are in none."""
    ended = {UUID(each.occurrence): each for each in endings if each.task_key.startswith(BEGINNING)}
    if not ended or not router.allow_migrate_model(using, WorkflowJob):
        return
    jobs = list(WorkflowJob.objects.using(using).filter(job__in=ended, has_ended=False))
    if jobs:
        with atomic(using=using):
            _follow(jobs, {key: each.state == State.COMPLETED for key, each in ended.items()}, using)


def _follow(jobs: Collection[WorkflowJob], succeeded: Mapping[UUID, bool], using: str) -> None:
    rows = Workflow.objects.using(using).filter(pk__in={job.workflow_id for job in jobs})
    workflows = {workflow.pk: workflow for workflow in rows.order_by("pk").select_for_update()}
    now = story_now(using)
    WorkflowJob.objects.using(using).filter(pk__in=[job.pk for job in jobs]).update(has_ended=True)
    for job in jobs:
        _count(workflows[job.workflow_id], job, succeeded[job.pk], now)
    following = [part for job in jobs for part in _after(workflows[job.workflow_id], job, succeeded[job.pk])]
    unlike = {(part.workflow.pk, part.role, part.place): part for part in following}
    _make(list(_readable(unlike.values(), now)), now=now, using=using)
    for workflow in workflows.values():
        _end(workflow, now)
    columns = ["ahead", "completed", "failed", "state", "finished_at"]
    Workflow.objects.using(using).bulk_update(workflows.values(), columns)


def _count(workflow: Workflow, job: WorkflowJob, succeeded: bool, now: datetime) -> None:
    workflow.ahead -= 1
    if job.role == Role.STEP:
        workflow.completed += succeeded
        workflow.failed += not succeeded and workflow.state == WorkflowState.RUNNING
    elif not succeeded and workflow.state == WorkflowState.RUNNING:
        workflow.state, workflow.finished_at = WorkflowState.FAILED, now


def _after(workflow: Workflow, job: WorkflowJob, succeeded: bool) -> Iterator[Part]:
    """What follows a job that has ended, once all that ended with it are counted."""
    if workflow.state != WorkflowState.RUNNING or job.role != Role.STEP:
        return
    if workflow.kind == CHAIN:
        if succeeded and job.place + 1 < len(workflow.steps):
            yield from _steps(workflow, [job.place + 1])
    elif workflow.kind == BATCH and not workflow.ahead:
        outcome = Role.ON_FAILURE if workflow.failed else Role.ON_SUCCESS
        yield from _callbacks(workflow, [Role.ON_COMPLETE, outcome])


def _end(workflow: Workflow, now: datetime) -> None:
    """A workflow ends with the last of its jobs. A batch that has called back has failed only if a callback has."""
    if workflow.ahead or workflow.state != WorkflowState.RUNNING:
        return
    told_of = workflow.kind == BATCH and {Role.ON_COMPLETE, Role.ON_FAILURE} & set(workflow.callbacks)
    has_failed = workflow.failed and not told_of
    workflow.state = WorkflowState.FAILED if has_failed else WorkflowState.COMPLETED
    workflow.finished_at = now


def find_workflow(key: UUID, seen: ScheduledTaskQuerySet | None = None, *, using: str) -> Workflow:
    """A workflow by its id; ``NotFound`` also if one of its jobs is not among those ``seen``."""
    workflow = Workflow.objects.using(using).filter(pk=key).first()
    if workflow is None or not _is_seen(workflow, seen, using):
        raise NotFound(f"There is no workflow {key}.", resource_type="workflow", resource_id=str(key))
    return workflow


def _is_seen(workflow: Workflow, seen: ScheduledTaskQuerySet | None, using: str) -> bool:
    if seen is None:
        return True
    made = WorkflowJob.objects.using(using).filter(workflow=workflow).values("job")
    known = set(seen.filter(pk__in=made).values_list("pk", flat=True))  # None are left of those that were pruned.
    return bool(known) and not all_jobs(using=using).filter(pk__in=made).exclude(pk__in=known).exists()


def cancel_workflow(workflow: Workflow, reason: Reason, *, now: datetime, using: str) -> tuple[Workflow, int]:
    """
    Cancel a workflow: its jobs that nobody has taken yet, and those that would follow. One that a worker has may end. Gives it,
    and how many jobs were cancelled.

    All its open jobs are locked before it, as by whoever ends one of them: nothing can follow meanwhile, and nobody is waited
    for in a circle.
    """
    with atomic(using=using):
        held: dict[UUID, ScheduledTask] = {}
        while more := _open_jobs(workflow, set(held), using):  # A chain may have gone on while its job was waited for.
            held |= {task.pk: task for task in more}
        workflow = Workflow.objects.using(using).select_for_update().get(pk=workflow.pk)
        if workflow.state != WorkflowState.RUNNING:
            said = f"The workflow {workflow.pk} has ended: it is {workflow.state}."
            raise Conflict(said, workflow_id=str(workflow.pk), current_state=workflow.state)
        workflow.state, workflow.finished_at = WorkflowState.CANCELLED, now
        workflow.save(using=using, update_fields=["state", "finished_at"])
        waiting = [task for _key, task in sorted(held.items()) if task.state in OPEN - {State.ACTIVE}]
        done = apply(
            [Write(task=task, triggers=(Trigger.CANCEL,), reason=reason) for task in waiting], now=now, using=using
        )
        workflow.refresh_from_db(using=using)
    return workflow, len(done)


def call_off_expired(workflow: Workflow, *, now: datetime, using: str) -> int:
    """Call off its jobs whose time is over, so that it goes on where nobody fetches from their queues; gives how many."""
    made = WorkflowJob.objects.using(using).filter(workflow=workflow, has_ended=False).values("job")
    with atomic(using=using):
        rows = all_jobs(using=using).open().exclude(state=State.ACTIVE).filter(pk__in=made, expires_at__lte=now)
        tasks = list(rows.by_id().locked(skip_locked=True))
        writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=Reason(ReasonCode.EXPIRED)) for task in tasks]
        return len(apply(writes, now=now, using=using))


def _open_jobs(workflow: Workflow, held: Collection[UUID], using: str) -> list[ScheduledTask]:
    made = WorkflowJob.objects.using(using).filter(workflow=workflow, has_ended=False).values_list("job", flat=True)
    return list(all_jobs(using=using).filter(pk__in=[key for key in made if key not in held]).by_id().locked())


def forget_ended(ended_before: datetime, *, using: str) -> int:
    """Forget workflows that ended before this; gives how many rows."""
    old = Workflow.objects.using(using).filter(finished_at__lt=ended_before).order_by("finished_at")
    keys = list(old.values_list("pk", flat=True)[:FORGOTTEN])
    return Workflow.objects.using(using).filter(pk__in=keys).delete()[0] if keys else 0
