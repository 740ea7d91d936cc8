"""What the specification has beside jobs: queues that are paused, schedules, and dead letters that were put away."""

from __future__ import annotations

from typing import Final

from django.db import models

from timeline.ojs.values import MAX_QUEUE

MAX_CRON: Final = 60


class Overlap(models.TextChoices):
    """What a schedule does while the job that it made before is still open."""

    SKIP = "skip", "make none"
    ALLOW = "allow", "make one beside it"
    CANCEL = "cancel_previous", "cancel it and make one"
    ENQUEUE = "enqueue", "make one that waits for it"


class Queue(models.Model):
    """A queue that was paused once. Others need no row."""

    name = models.CharField(max_length=MAX_QUEUE, primary_key=True)
    paused_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "queue"
        verbose_name_plural = "queues"
        permissions = [
            ("enqueue_jobs", "Can enqueue, read and cancel jobs over HTTP"),
            ("work_jobs", "Can fetch jobs and tell how they ended over HTTP"),
            ("manage_jobs", "Can manage queues, schedules and dead letters over HTTP"),
        ]

    def __str__(self) -> str:
        return self.name


class Cron(models.Model):
    """A schedule. Its next job is made by a task of the timeline ``ojs_cron``; ``body`` is what the job is made of."""

    name = models.CharField(max_length=MAX_CRON, unique=True)
    expression = models.CharField(max_length=100)
    time_zone = models.CharField(max_length=100, default="UTC")
    overlap = models.CharField(max_length=15, choices=Overlap.choices, default=Overlap.SKIP)
    enabled = models.BooleanField(default=True)
    body = models.JSONField()
    given = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    next_run_at = models.DateTimeField(null=True, blank=True)
    last_run_at = models.DateTimeField(null=True, blank=True)
    last_job = models.UUIDField(null=True, blank=True)

    class Meta:
        verbose_name = "schedule of jobs"
        verbose_name_plural = "schedules of jobs"

    def __str__(self) -> str:
        return self.name


class UniqueKey(models.Model):
    """What makes a job the only one of its kind, and the last job that was it. Its row is locked while one is made."""

    key = models.CharField(max_length=64, primary_key=True)
    job = models.UUIDField(null=True, blank=True)

    class Meta:
        verbose_name = "key of unique jobs"
        verbose_name_plural = "keys of unique jobs"

    def __str__(self) -> str:
        return self.key


class PutAway(models.Model):
    """A dead letter that is not listed any more. Its row stays as long as others do."""

    id = models.UUIDField(primary_key=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name = "dead letter put away"
        verbose_name_plural = "dead letters put away"

    def __str__(self) -> str:
        return str(self.id)


class WorkflowState(models.TextChoices):
    """How far a workflow is."""

    RUNNING = "running", "running"
    COMPLETED = "completed", "completed"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


class Role(models.TextChoices):
    """What a job is in its workflow."""

    STEP = "step", "step"
    ON_COMPLETE = "on_complete", "runs when all have ended"
    ON_SUCCESS = "on_success", "runs when all have succeeded"
    ON_FAILURE = "on_failure", "runs when one has failed"


class Workflow(models.Model):
    """
    A chain, group or batch of jobs. ``steps`` and ``callbacks`` are what its jobs are made of. ``ahead``: how many of
    those that were made have not ended. Its row is locked while one of them ends, so that what follows is made once.
    """

    id = models.UUIDField(primary_key=True)
    kind = models.CharField(max_length=10)
    name = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=10, choices=WorkflowState.choices, default=WorkflowState.RUNNING)
    steps = models.JSONField()
    callbacks = models.JSONField(default=dict, blank=True)
    given = models.JSONField(default=dict, blank=True)
    ahead = models.PositiveIntegerField(default=0)
    completed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        verbose_name = "workflow of jobs"
        verbose_name_plural = "workflows of jobs"

    def __str__(self) -> str:
        return self.name or str(self.id)


class WorkflowJob(models.Model):
    """A job of a workflow that was made. ``place``: which step it is; of a callback 0."""

    job = models.UUIDField(primary_key=True)
    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="jobs")
    role = models.CharField(max_length=11, choices=Role.choices, default=Role.STEP)
    place = models.PositiveIntegerField()
    has_ended = models.BooleanField(default=False)

    class Meta:
        verbose_name = "job of a workflow"
        verbose_name_plural = "jobs of workflows"
        constraints = [models.UniqueConstraint(fields=["workflow", "role", "place"], name="timeline_ojs_once")]

    def __str__(self) -> str:
        return f"{self.role} {self.place}"
