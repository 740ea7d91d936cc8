"""Machines: the moves that the database allows, those that were made, and who has taken what waits for people."""

from __future__ import annotations

from typing import Final

from django.db import models

from timeline.ids import uuid7
from timeline.models.run import TimelineRun

RENAMED: Final = "renamed"  # The event of an entry that is written when a state gets another name in the code.


class Edge(models.Model):
    """A move from one state of a machine to another. Edges are added from the code, and never removed automatically."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    timeline = models.CharField(max_length=50)
    from_state = models.CharField(max_length=50)
    to_state = models.CharField(max_length=50)

    class Meta:
        db_table = "timeline_edge"
        constraints = [
            models.UniqueConstraint(fields=["timeline", "from_state", "to_state"], name="timeline_edge_once")
        ]

    def __str__(self) -> str:
        return f"{self.timeline}: {self.from_state} → {self.to_state}"


class RunEntry(models.Model):
    """
    One move of a run, or its beginning: ``seq`` 0, from no state.

    ``seq`` has no gaps, and the last is the run's ``moves``. Replaying the entries in this order gives the run's ``state``,
    ``state_at``, ``back`` and ``moves``. ``at`` is story time. ``cause_id`` is the id of the event; NULL: there was none,
    as when somebody begins a run by hand, or a state is renamed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # The unique key with ``seq`` finds the entries of a run. The database has no foreign key here: an entry is written with the
    # run locked, and prune deletes both.
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
