"""``Admission``: a task of a destructive kind that was let in; it counts once."""

from __future__ import annotations

from django.db import models


class Admission(models.Model):
    """
    A task that is counted by its brake may start, or has started. It is written before anybody counts. So if several let tasks
    in at the same moment, the last of them sees all.

    ``at`` is the story time from which it counts; for a task that a person let go, the time of that release.
    """

    # Not a foreign key: the row is deleted when nobody counts it any more, whatever has become of its task.
    task_id = models.UUIDField(primary_key=True, editable=False)
    task_key = models.CharField(max_length=101)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["task_key", "at"], name="timeline_admission_kind")]

    def __str__(self) -> str:
        return f"{self.task_key} {self.task_id}"
