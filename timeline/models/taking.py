"""``Taking``: who has taken what waits for people, and who has given it to whom."""

from __future__ import annotations

from typing import Final

from django.db import models

from timeline.ids import uuid7

MAX_HOLDER: Final = 150


class Taking(models.Model):
    """
    Somebody has taken a run or a task that waits for people, or was given it. The last row of an ``item`` and ``visit`` counts.

    Rows are only added. ``item``: id of the run or the task; the database has no foreign key here, so that it is deleted by
    processes that do not know this table. ``visit``: the run's ``moves``; 0 for a task. So what was answered is nobody's any
    more. ``actor``: who took it or handed it over. ``at`` is story time.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    item = models.UUIDField()
    visit = models.IntegerField()
    seq = models.IntegerField()
    holder = models.CharField(max_length=MAX_HOLDER)
    actor = models.CharField(max_length=150, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        db_table = "timeline_taking"
        constraints = [models.UniqueConstraint(fields=["item", "visit", "seq"], name="timeline_taking_seq")]
        indexes = [models.Index(fields=["holder", "id"], name="timeline_taking_holder")]

    def __str__(self) -> str:
        return f"{self.item}: {self.holder}"
