"""
``Figure``: what became of a kind of task in an hour. ``Total``: the same since counting began. ``RollUp``: how far the log has
been counted into both.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from timeline.models.task import ScheduledTask


class Counts(models.Model):
    """
    What became of a kind of task.

    ``failed`` counts attempts that failed and are tried again. ``lateness`` and ``duration`` are counts by
    ``timeline.timing.buckets``: how late tasks started, and how long attempts took that ended by themselves.
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
    """One row an hour of story time and task key."""

    hour = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["hour", "task_key"], name="timeline_figure_hour")]

    def __str__(self) -> str:
        return f"{self.task_key} at {self.hour}"


class Total(Counts):
    """
    One row a task key. It is never deleted, and its numbers only grow.

    ``late_seconds`` and ``taken_seconds`` are the sums of what ``lateness`` and ``duration`` count.
    """

    late_seconds = models.FloatField(default=0)
    taken_seconds = models.FloatField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task_key"], name="timeline_total_task_key")]

    def __str__(self) -> str:
        return f"{self.task_key} since counting began"


class RollUp(models.Model):
    """
    One row a database. Entries of the log up to ``counted`` are in the figures and the totals.

    Those up to ``marked`` follow once no transaction is open that was when they were marked, as one of them may yet commit an
    entry with a smaller number. On PostgreSQL ``horizon`` says which those are: all below it.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    counted = models.BigIntegerField(default=0)
    marked = models.BigIntegerField(default=0)
    horizon = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="timeline_rollup_one")]

    def __str__(self) -> str:
        return f"counted up to {self.counted}"
