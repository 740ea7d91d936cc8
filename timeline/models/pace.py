"""``Pace``: how long the handlers of a kind take, as workers measured it. It decides about the sizes of messages."""

from __future__ import annotations

from django.db import models

from timeline.definition.naming import MAX_NAME


class Pace(models.Model):
    """One row for each kind. ``seconds`` is a moving average for one task; ``measured_at`` is machine time."""

    task_key = models.CharField(max_length=2 * MAX_NAME + 1, primary_key=True)
    seconds = models.FloatField()
    measured_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "paces"

    def __str__(self) -> str:
        return f"{self.task_key}: {self.seconds:.3g} s"
