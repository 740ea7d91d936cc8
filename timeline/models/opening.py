"""``Opening``: somebody has opened a key of a limit that a task had left closed, and why."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from timeline.ids import uuid7


class Opening(models.Model):
    """
    One row for each task that gave its place up. The task is no foreign key, so that the row is kept when the task is pruned.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    limit_key = models.CharField(max_length=100)
    task_key = models.CharField(max_length=101)
    task_id = models.UUIDField()
    slot = models.PositiveSmallIntegerField()
    opened_at = models.DateTimeField()
    reason = models.CharField(max_length=200)
    actor = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        verbose_name = _("opening of a limit")
        verbose_name_plural = _("openings of limits")
        permissions = [("open_limit", "Can open a limit that is closed")]

    def __str__(self) -> str:
        return f"{self.limit_key} opened at {self.opened_at}"
