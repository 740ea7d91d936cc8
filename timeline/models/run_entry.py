"""``RunEntry``: that a run of a machine came into a state. Append-only."""

from __future__ import annotations

from typing import Final

from django.db import models

from timeline.ids import uuid7
from timeline.models.run import TimelineRun

RENAMED: Final = "renamed"  # What an entry has as its event by which a run came into a state that has another name now.


class RunEntry(models.Model):
    """
    One move of a run, or its beginning: ``seq`` 0, from no state.

    ``seq`` has no gaps, and the last one is the run's ``moves``: replaying the entries in its order gives the run's ``state``,
    ``state_at``, ``back`` and ``moves``. ``at`` is story time. ``cause_id`` is the id of the event; none: it was begun by hand.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Its unique key with ``seq`` finds the entries of a run. No foreign key of the database's: who writes one holds the run,
    # and prune deletes both.
    run = models.ForeignKey(
        TimelineRun, db_index=False, db_constraint=False, on_delete=models.DO_NOTHING, related_name="entries"
    )
    seq = models.IntegerField()
    at = models.DateTimeField()
    from_state = models.CharField(max_length=50, blank=True, default="")
    to_state = models.CharField(max_length=50)
    back = models.CharField(max_length=50, blank=True, default="")
    event = models.CharField(max_length=100, blank=True, default="")
    cause_id = models.UUIDField(null=True, blank=True)
    actor = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        db_table = "timeline_runentry"
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="timeline_run_entry_seq")]
        verbose_name_plural = "run entries"

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"
