"""Figures: how many tasks of a kind started, ended and so on, by the hour and in total, and how far they are counted."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from timeline.models.task import ScheduledTask


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
