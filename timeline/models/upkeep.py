"""Rows of the package's own, by which processes agree: identity, pace, signs, sweeps, answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import models
from django.db.models import Q

from timeline.clocks import MachineTime
from timeline.definition.names import MAX_NAME
from timeline.models.task import ScheduledTask

THE_ONE = 1

KEPT: Final = timedelta(hours=24)


class IdentityQuerySet(models.QuerySet["Identity"]):
    def unpolled(self, since: timedelta) -> IdentityQuerySet:
        """The row, if nobody has polled for so long, by the real clock of the database."""
        return self.filter(Q(polled_at__isnull=True) | Q(polled_at__lt=MachineTime(-since)))

    def there(self, since: timedelta) -> IdentityQuerySet:
        """The row, if the database has belonged to this site for so long."""
        return self.filter(adopted_at__lt=MachineTime(-since))


class Identity(models.Model):
    """One row: ``site``, in every copy, is as in its processes' ``TIMELINE["SITE"]``; ``polled_at`` is machine time."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=THE_ONE, editable=False)
    site = models.CharField(max_length=100, blank=True)
    adopted_at = models.DateTimeField()
    polled_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(IdentityQuerySet)()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=THE_ONE), name="timeline_identity_one")]
        verbose_name_plural = "identities"

    def __str__(self) -> str:
        return self.site or "no site"


class Pace(models.Model):
    """One row for each kind. ``seconds`` is a moving average for one task; ``measured_at`` is machine time."""

    task_key = models.CharField(max_length=2 * MAX_NAME + 1, primary_key=True)
    seconds = models.FloatField()
    measured_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "paces"

    def __str__(self) -> str:
        return f"{self.task_key}: {self.seconds:.3g} s"


class Sign(models.Model):
    """One row for each process that runs tasks, ``worker``: its last sign, and when a rescue first missed one; machine time."""

    worker = models.CharField(max_length=100, primary_key=True)
    seen_at = models.DateTimeField()
    missed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "timeline_worker"

    def __str__(self) -> str:
        return f"{self.worker} at {self.seen_at}"


class SweepQuerySet(models.QuerySet["Sweep"]):
    def resting(self, interval: timedelta) -> SweepQuerySet:
        """Parts whose round is over, and whose next one is not due. The interval counts between beginnings of rounds."""
        return self.filter(Q(ended_at__isnull=False) & Q(begun_at__gt=MachineTime(-interval)))


class Sweep(models.Model):
    """
    One row for each part: open runs, ended runs of machines (``timeline`` empty), or the entities of a timeline.

    ``position`` is data of the part; both times, of the last round, are machine time.
    """

    timeline = models.CharField(max_length=MAX_NAME, primary_key=True)
    position = models.JSONField(default=dict)
    begun_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(SweepQuerySet)()

    def __str__(self) -> str:
        return f"sweep of {self.timeline or 'runs'}"


class AnswerQuerySet(models.QuerySet["Answer"]):
    def no_longer_kept(self) -> AnswerQuerySet:
        """Answers that are too old, so that their keys may be used for other requests."""
        return self.filter(made_at__lt=MachineTime(-KEPT, once=True))


class Answer(models.Model):
    """
    One row for each request that has changed something.

    ``key`` is a hash of who asked and of their key, ``fingerprint`` of what they asked for. ``status`` is 0 until there is an
    answer; others never see this, as both are written in one transaction. ``headers`` are those that it adds. ``body`` is JSON
    as text: values, since what is shown of them depends on who asks. ``made_at`` is machine time.
    """

    key = models.CharField(max_length=64, primary_key=True)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField()
    body = models.TextField()
    made_at = models.DateTimeField()

    objects = models.Manager.from_queryset(AnswerQuerySet)()

    class Meta:
        indexes = [models.Index(fields=["made_at"], name="timeline_answer_made")]

    def __str__(self) -> str:
        return f"answer {self.status} at {self.made_at}"


class Counts(models.Model):
    """
    ``failed`` counts attempts that are tried again; ``lateness`` and ``duration`` have the buckets of ``…maintenance.figures``.

    Late is when tasks started; ``duration`` is of attempts after which the task was completed, retryable or discarded.
    """

    task_key = models.CharField(max_length=ScheduledTask._meta.get_field("task_key").max_length)
    started = models.PositiveBigIntegerField(default=0)
    completed = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    discarded = models.PositiveBigIntegerField(default=0)
    cancelled = models.PositiveBigIntegerField(default=0)
    lateness = models.JSONField(default=list)
    duration = models.JSONField(default=list)

    class Meta:
        abstract = True


class Figure(Counts):
    """One row for each task key and hour of story time."""

    hour = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["hour", "task_key"], name="timeline_figure_hour")]

    def __str__(self) -> str:
        return f"{self.task_key} at {self.hour}"


class Total(Counts):
    """
    One row for each task key, kept for ever; ``late_seconds`` and ``taken_seconds`` sum up what the counts count.

    ``reentered`` counts how often handlers were entered again within an attempt, because what they shared was undone.
    """

    # By the database as well: processes of a version that does not know it insert rows, too.
    reentered = models.PositiveBigIntegerField(default=0, db_default=0)
    late_seconds = models.FloatField(default=0)
    taken_seconds = models.FloatField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task_key"], name="timeline_total_task_key")]

    def __str__(self) -> str:
        return f"{self.task_key} since counting began"


class RollUp(models.Model):
    """
    One row in each database. Log entries up to ``counted`` are in the figures and the totals.

    Those up to ``marked`` follow when all transactions open at the marking have ended, which may still commit a smaller number.
    On PostgreSQL, these are all below ``horizon``.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    counted = models.BigIntegerField(default=0)
    marked = models.BigIntegerField(default=0)
    horizon = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="timeline_rollup_one")]

    def __str__(self) -> str:
        return f"counted up to {self.counted}"
