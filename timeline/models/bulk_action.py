"""``BulkAction``: somebody acts on all tasks of a question. Polls do the work, batch by batch."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.utils.translation import pgettext_lazy

from timeline.ids import uuid7
from timeline.models.columns import in_range
from timeline.models.kin import sought
from timeline.timing import EARLIEST, LATEST
from timeline.timing.offsets import Offset

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


class BulkState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"


class BulkActionQuerySet(models.QuerySet["BulkAction"]):
    def open(self) -> BulkActionQuerySet:
        return self.filter(ended_at__isnull=True)


class BulkAction(models.Model):
    """
    ``filters`` narrow the tasks that existed when it was asked for. They are names that ``narrow`` reads, each with states,
    text, or moments as text. A move has ``at``, or ``by_days`` and ``by_seconds``; a redrive has ``spread``. ``asker`` is the
    key of the account whose rights count; ``actor`` is its name in the log. ``place``: last task looked at; ``matched``: tasks
    at first; ``skipped``: why → how many stay as they are. Moments are story time.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    action = models.CharField(max_length=10)
    filters = models.JSONField()
    at = models.DateTimeField(null=True, blank=True)
    by_days = models.IntegerField(default=0, db_default=0)
    by_seconds = models.IntegerField(default=0, db_default=0)
    spread = models.DurationField(null=True, blank=True)
    reason = models.CharField(max_length=200)
    asker = models.CharField(max_length=100)
    actor = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField()
    matched = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    skipped = models.JSONField(default=dict, blank=True)
    place = models.UUIDField(null=True, blank=True)
    is_stopped = models.BooleanField(default=False)
    stopped_by = models.CharField(max_length=150, blank=True, default="")
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(BulkActionQuerySet)()

    class Meta:
        verbose_name = pgettext_lazy("timeline", "bulk action")
        verbose_name_plural = pgettext_lazy("timeline", "bulk actions")
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(is_stopped=False) | Q(ended_at__isnull=False), name="timeline_bulk_stopped_ended"
            ),
            models.CheckConstraint(
                condition=in_range("created_at", optional=["at", "ended_at"]), name="timeline_bulk_in_range"
            ),
        ]
        indexes = [
            # For polls, which look at the open ones. This index is mostly empty.
            models.Index(fields=["id"], condition=Q(ended_at__isnull=True), name="timeline_bulk_open"),
            models.Index(fields=["ended_at"], condition=Q(ended_at__isnull=False), name="timeline_bulk_ended"),
        ]

    def __str__(self) -> str:
        return f"{self.action} in bulk {self.pk}"

    @property
    def by(self) -> Offset | None:
        """By how much each task is moved from its own time; None: it is moved to ``at``, or not at all."""
        return Offset(days=self.by_days, exact=timedelta(seconds=self.by_seconds)) or None

    @property
    def looked(self) -> int:
        return self.done + self.left

    @property
    def left(self) -> int:
        return sum(self.skipped.values())

    @property
    def state(self) -> BulkState:
        if self.ended_at is None:
            return BulkState.RUNNING
        return BulkState.STOPPED if self.is_stopped else BulkState.DONE

    def narrow(self, tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
        """Narrow tasks down to those that are meant: that fit the filters, and existed when it was asked for."""
        # By both: tasks that it makes itself have later keys, even if a clock of tests or of a demo stands still.
        tasks = tasks.filter(created_at__lte=self.created_at, pk__lt=self.pk)
        said = self.filters
        if said.get("task"):
            tasks = tasks.with_handler([said["task"]])
        if said.get("timeline"):
            tasks = tasks.of_timeline(said["timeline"])
        if said.get("group"):
            tasks = tasks.dead_letters(said["group"])
        if said.get("groups"):
            tasks = tasks.dead_letters().filter(fingerprint__in=said["groups"])
        if said.get("kind"):
            tasks = tasks.about(said["kind"])
        if said.get("q"):
            tasks = tasks.filter(sought(said["q"], using=tasks.db))
        if said.get("due_after") or said.get("due_before"):
            first, last = (said.get(name) for name in ("due_after", "due_before"))
            tasks = tasks.due_between(
                datetime.fromisoformat(first) if first else EARLIEST, datetime.fromisoformat(last) if last else LATEST
            )
        return tasks.filter(self._columns())

    def _columns(self) -> Q:
        said, condition = self.filters, Q()
        if said.get("state"):
            condition &= Q(state__in=sorted(said["state"]))
        if said.get("reason"):
            condition &= Q(reason_code=said["reason"])
        if said.get("ended_after"):
            condition &= Q(finished_at__gt=datetime.fromisoformat(said["ended_after"]))
        if said.get("ended_until"):
            condition &= Q(finished_at__lte=datetime.fromisoformat(said["ended_until"]))
        return condition
