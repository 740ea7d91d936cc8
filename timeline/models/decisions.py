"""``Hold`` (nothing runs for a while), ``Admission`` of a task by a brake, and ``Opening`` of a limit's place."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from timeline.ids import uuid7
from timeline.models.columns import EntityColumns, in_range
from timeline.models.entities import EntityRef
from timeline.timing.offsets import Offset

if TYPE_CHECKING:
    from datetime import datetime


MAX_TARGET = 101  # As long as a task key.


class Scope(models.TextChoices):
    """What a hold covers."""

    ENTITY = "entity", pgettext_lazy("timeline", "entity")
    TASK = "task", pgettext_lazy("timeline", "task")
    TIMELINE = "timeline", pgettext_lazy("timeline", "timeline")
    QUEUE = "queue", pgettext_lazy("timeline", "queue")
    TAG = "tag", pgettext_lazy("timeline", "tag")
    EVERYTHING = "everything", pgettext_lazy("timeline", "everything")


_BY_NAME = (Scope.TASK, Scope.TIMELINE, Scope.QUEUE, Scope.TAG)


class Then(models.TextChoices):
    """What happens to the tasks when the hold ends."""

    RUN = "run", _("what is due runs")
    SHIFT = "shift", _("all of it moves on by the time it was held")
    EXPIRE = "expire", _("what is due is cancelled")


class HoldQuerySet(models.QuerySet["Hold"]):
    def open(self) -> HoldQuerySet:
        """Holds that are in force."""
        return self.filter(released_at__isnull=True)

    def over(self, now: datetime) -> HoldQuerySet:
        """Holds that are still in force, though somebody has released them, or their end has come."""
        return self.open().filter(Q(lifted_at__isnull=False) | Q(until__lte=now))

    def by_the_brake(self, task_key: str) -> HoldQuerySet:
        """Holds that the brake of a kind has made."""
        return self.filter(scope=Scope.TASK, target=task_key, park_above__isnull=False)

    def oldest_first(self) -> HoldQuerySet:
        """In the order in which they were made."""
        return self.order_by("created_at", "pk")


class Hold(EntityColumns):
    """
    One hold. It is stored beside the tasks: none of them changes while it is on hold.

    ``target`` is the task key, the timeline, the queue or the tag. ``names`` are all names of an entity, each a label and an
    id. ``lifted_at`` is the end of the time for which it counts. ``released_at`` is when all work for it was done, and until
    then it is in force. This may be later, since tasks are shifted or cancelled batch by batch: ``place`` is the last task
    that was looked at, ``settled`` is how many were changed. All moments are story time.

    ``park_above`` and ``park_within`` come from the destructive task whose brake has made it; None: a person has made it.
    For the hold of a brake, ``place`` is an id made at its release: tasks made before are let go, and ``settled`` is how many.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    scope = models.CharField(max_length=10, choices=Scope.choices)
    target = models.CharField(max_length=MAX_TARGET, blank=True, default="")
    names = models.JSONField(default=list, blank=True, editable=False)
    then = models.CharField(max_length=6, choices=Then.choices, default=Then.RUN)
    until = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=200)
    actor = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField()
    lifted_at = models.DateTimeField(null=True, blank=True)
    released_by = models.CharField(max_length=150, blank=True, default="")
    release_reason = models.CharField(max_length=200, blank=True, default="", db_default="")
    park_above = models.PositiveIntegerField(null=True, blank=True, editable=False)
    park_within = models.DurationField(null=True, blank=True, editable=False)
    place = models.UUIDField(null=True, blank=True, editable=False)
    settled = models.PositiveIntegerField(default=0, editable=False)
    released_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(HoldQuerySet)()

    class Meta:
        verbose_name = pgettext_lazy("timeline", "hold")
        verbose_name_plural = pgettext_lazy("timeline", "holds")
        default_permissions = ("view",)
        permissions = [("hold_tasks", "Can hold and release tasks")]
        constraints = [
            models.CheckConstraint(condition=Q(scope__in=sorted(Scope)), name="timeline_hold_scope_known"),
            models.CheckConstraint(condition=Q(then__in=sorted(Then)), name="timeline_hold_then_known"),
            models.CheckConstraint(
                condition=Q(scope=Scope.ENTITY, target="") & ~Q(entity_label="") & ~Q(entity_id="")
                | Q(scope=Scope.EVERYTHING, target="", entity_label="", entity_id="")
                | Q(scope__in=sorted(_BY_NAME), entity_label="", entity_id="") & ~Q(target=""),
                name="timeline_hold_names_what",
            ),
            models.CheckConstraint(
                condition=Q(released_at__isnull=True) | Q(lifted_at__isnull=False), name="timeline_hold_lifted_first"
            ),
            models.CheckConstraint(
                condition=Q(park_above__isnull=True, park_within__isnull=True)
                | Q(scope=Scope.TASK, until__isnull=True, then=Then.RUN, park_above__gte=1, park_within__isnull=False),
                name="timeline_hold_of_brake",
            ),
            # The first to insert it makes it; the others find it.
            models.UniqueConstraint(
                fields=["target"],
                condition=Q(park_above__isnull=False, released_at__isnull=True),
                name="timeline_hold_one_brake",
            ),
            models.CheckConstraint(
                condition=in_range("created_at", optional=["until", "lifted_at", "released_at"]),
                name="timeline_hold_in_range",
            ),
        ]
        indexes = [
            # For each poll and each last look, which look at the open ones. This index is mostly empty.
            models.Index(fields=["created_at", "id"], condition=Q(released_at__isnull=True), name="timeline_hold_open"),
        ]

    def __str__(self) -> str:
        return f"hold of {self.what}"

    @property
    def what(self) -> str:
        """What it covers, for people; in English with the names from the code."""
        if self.scope == Scope.ENTITY:
            return str(self.entity_ref)
        if self.scope in (Scope.QUEUE, Scope.TAG):
            return f"{self.get_scope_display()} {self.target}"
        return self.target or gettext("everything there is")

    @property
    def why(self) -> str:
        """Why, for people: the text that somebody wrote; for a brake, a sentence in the present language."""
        if self.park_above is None or self.park_within is None:
            return self.reason
        within = Offset(days=self.park_within.days, exact=timedelta(seconds=self.park_within.seconds)).describe()
        said = gettext("more than %(most)s of it would have started within %(within)s, so its brake has stopped it")
        return said % {"most": self.park_above, "within": within}

    @property
    def is_by_brake(self) -> bool:
        """Whether the brake of a destructive task has made it."""
        return self.park_above is not None

    @property
    def is_open(self) -> bool:
        """Whether it is in force."""
        return self.released_at is None

    @property
    def refs(self) -> list[EntityRef]:
        return [EntityRef(*name) for name in self.names]


class Admission(models.Model):
    """A task that a brake counts may start, or has: from ``at`` on in story time. Written before anybody counts."""

    # Not a foreign key: the row is deleted when nobody counts it any more, whatever has become of its task.
    task_id = models.UUIDField(primary_key=True, editable=False)
    task_key = models.CharField(max_length=101)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["task_key", "at"], name="timeline_admission_kind")]

    def __str__(self) -> str:
        return f"{self.task_key} {self.task_id}"


class RateKey(models.Model):
    """
    What shares a rate: when its last attempts began (``starts``, microseconds since 1970 as JSON), until when it is braked, and
    when the last of those that wait looks again (``tail``). After ``kept_until`` the row says nothing any more.
    """

    key = models.CharField(max_length=100, primary_key=True)
    starts = models.TextField(default="[]")
    tail = models.DateTimeField(null=True)
    braked_until = models.DateTimeField(null=True)
    kept_until = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["kept_until"], name="timeline_rate_kept")]

    def __str__(self) -> str:
        return self.key


class Opening(models.Model):
    """One row for each task that gave its place up. The task is no foreign key: the row outlives a pruned task."""

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
