"""``LogEntry``: one fact in the life of a task. Entries are only added."""

from __future__ import annotations

from django.db import models

from timeline.lifecycle import ReasonCode, State
from timeline.models.task import ScheduledTask


class LogEntry(models.Model):
    """
    One fact in the life of a task: a move between states, or a change of its time (``from_state`` = ``to_state``).

    ``detail`` has other changes of the row: ``scheduled_at`` (the new time, ISO 8601); for a failed attempt ``error``
    (``class``, ``message``, ``traceback``); and for a reason that the package itself gives ``said``: see ``timeline.reasons``.
    Replaying the log of a task in the order of ``seq``, which has no gaps, gives the row.
    """

    # The unique key with ``seq`` finds the entries of a task. PostgreSQL has no foreign key here: see KEEPERS in triggers.py.
    task = models.ForeignKey(ScheduledTask, db_index=False, on_delete=models.PROTECT, related_name="log")
    seq = models.PositiveIntegerField()
    at = models.DateTimeField()
    from_state = models.CharField(max_length=9, choices=State.choices)
    to_state = models.CharField(max_length=9, choices=State.choices)
    attempt = models.PositiveIntegerField()
    actor = models.CharField(max_length=150, blank=True, default="")
    reason_code = models.CharField(max_length=20, choices=ReasonCode.choices, blank=True, default="")
    reason = models.CharField(max_length=200, blank=True, default="")
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "seq"], name="timeline_log_seq")]
        verbose_name_plural = "log entries"

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"
