"""``Sign``: the last sign of each worker that has run tasks recently."""

from __future__ import annotations

from django.db import models


class Sign(models.Model):
    """
    One row for each process that runs tasks.

    ``worker`` is its name, as in the rows of its tasks. Both times are machine time: when it gave its last sign, and when a
    rescue first noticed since then that a sign was missing.
    """

    worker = models.CharField(max_length=100, primary_key=True)
    seen_at = models.DateTimeField()
    missed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "timeline_worker"

    def __str__(self) -> str:
        return f"{self.worker} at {self.seen_at}"
