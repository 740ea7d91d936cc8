"""``Sweep``: the sweep finds changes of which no signal came. A row says how far one part of it is."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q

from timeline.clocks import MachineTime
from timeline.definition.naming import MAX_NAME


class SweepQuerySet(models.QuerySet["Sweep"]):
    """Questions asked of parts."""

    def resting(self, interval: timedelta) -> SweepQuerySet:
        """Parts whose round is over, and whose next one is not due. The interval counts between beginnings of rounds."""
        return self.filter(Q(ended_at__isnull=False) & Q(begun_at__gt=MachineTime(-interval)))


class Sweep(models.Model):
    """
    One row for each part: the open runs, the runs of machines that have ended, or the entities of a timeline that starts with
    each of them.

    ``timeline`` is empty for the runs. ``position`` is plain data of the part. Both times are machine time: when the last round
    began, and when it ended, if it has.
    """

    timeline = models.CharField(max_length=MAX_NAME, primary_key=True)
    position = models.JSONField(default=dict)
    begun_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(SweepQuerySet)()

    def __str__(self) -> str:
        return f"sweep of {self.timeline or 'runs'}"
