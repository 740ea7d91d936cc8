"""``Admission``: a task of a destructive kind that was let in, counted once."""

from __future__ import annotations

from django.db import models


class Admission(models.Model):
    """
    That a task which its brake counts may start, or has started. It is written before anybody counts, so that of several who
    let tasks in at the same moment, the last sees all of them.

    ``at`` is the story time from which it counts; of what a person let go, the moment of that.
    """

    # No foreign key: it goes when nobody counts it any more, whatever has become of its task.
    task_id = models.UUIDField(primary_key=True, editable=False)
    task_key = models.CharField(max_length=101)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["task_key", "at"], name="timeline_admission_kind")]

    def __str__(self) -> str:
        return f"{self.task_key} {self.task_id}"
