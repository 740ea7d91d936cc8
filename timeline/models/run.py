"""``TimelineRun``: one pass of one entity through one timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact, GreaterThan

from timeline.ids import uuid7
from timeline.lifecycle import RunEnd
from timeline.models.columns import ENTITY_IS_WHOLE, EntityColumns, in_range
from timeline.models.entities import EntityRef
from timeline.models.event import Event
from timeline.models.kin import about_entity
from timeline.timing import LATEST

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.models.machine_rows import RunEntry

# The timeline of a run, and when it ended (or a time that never comes): for questions about all runs of a timeline, whose
# index has these expressions.
OF_TIMELINE: Final = Func(F("timeline"), template="(%(expressions)s || '')", output_field=models.TextField())
_NEVER: Final = "'9999-01-01 00:00:00+00:00'"
_ENDED: Final = Func(
    F("ended_at"), template=f"COALESCE(%(expressions)s, {_NEVER})", output_field=models.DateTimeField()
)
# Conditions of indexes for one question each. They are worded so that PostgreSQL does not use the index for other questions.
_STILL: Final = Exact(_ENDED, RawSQL(_NEVER, (), output_field=models.DateTimeField()))  # noqa: S611 (a constant)
_OF_MACHINE: Final = GreaterThan(
    Func(F("state"), template="(%(expressions)s || '')", output_field=models.TextField()), Value("")
)


class TimelineRunQuerySet(models.QuerySet["TimelineRun"]):
    def for_entity(self, entity: models.Model | EntityRef | None) -> TimelineRunQuerySet:
        """Runs of this entity, by any name in its family; None: runs of no entity."""
        return self.filter(about_entity(entity, using=self.db))

    def open(self) -> TimelineRunQuerySet:
        """Runs that have not ended."""
        return self.filter(ended_at__isnull=True)

    def of_timeline(self, name: str | models.Expression) -> TimelineRunQuerySet:
        """All runs of a timeline, in the order of the index by which they are found."""
        runs = self.alias(its_timeline=OF_TIMELINE, its_end=_ENDED).filter(its_timeline=name)
        return runs.order_by("its_end", "started_at")

    def of_machines(self) -> TimelineRunQuerySet:
        """Runs that are, or were, in a state."""
        return self.filter(_OF_MACHINE)

    def open_of_timeline(self, name: str) -> TimelineRunQuerySet:
        """Runs of a timeline that have not ended, in the order of their ids, by the index that has this order."""
        return self.alias(its_timeline=OF_TIMELINE).filter(its_timeline=name).still().order_by("pk")

    def still(self) -> TimelineRunQuerySet:
        """Runs of a timeline that have not ended, found by the index of all its runs."""
        return self.filter(_STILL)

    def ended_since(self, at: datetime) -> TimelineRunQuerySet:
        """Runs of a timeline that have ended after this time, found by the same index."""
        return self.alias(its_end=_ENDED).filter(its_end__gt=at, its_end__lt=LATEST)

    def last_ended(self) -> TimelineRunQuerySet:
        """Runs of a timeline that have ended, the last first, found by the same index."""
        return self.alias(its_end=_ENDED).filter(its_end__lt=LATEST).order_by("-its_end", "-started_at")

    def locked(self, *, skip_locked: bool = False) -> TimelineRunQuerySet:
        """Lock the rows, in order of their ids: second in the lock order, after the entities."""
        return self.order_by("pk").select_for_update(no_key=True, skip_locked=skip_locked)


class TimelineRun(EntityColumns):
    """One pass of one entity through one timeline; at most one is open for each (timeline, entity, key)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    timeline = models.CharField(max_length=50)
    key = models.CharField(max_length=100, blank=True, default="")
    params = models.JSONField(default=dict, blank=True)
    started_at = models.DateTimeField()
    # Times count from started_at, which may be long before. NULL only for a run that is tried out, and never stored.
    recorded_at = models.DateTimeField(null=True, blank=True, editable=False)
    # PostgreSQL has no foreign key here: see KEEPERS in triggers.py.
    started_by = models.ForeignKey(Event, null=True, blank=True, on_delete=models.PROTECT, related_name="runs_started")
    ended_at = models.DateTimeField(null=True, blank=True)
    # A RunEnd; empty as long as it is open. Only timeline.runs writes these three.
    end_code = models.CharField(max_length=20, blank=True, default="", db_default="", editable=False)
    end_reason = models.CharField(max_length=200, blank=True, default="")
    # If true, no second run of its entity, timeline and key ever begins.
    once = models.BooleanField(default=False, db_default=False, editable=False)
    # Earlier runs of its timeline, which the clock starts, have let its first task pass. They are not asked again.
    is_cleared = models.BooleanField(default=False, db_default=False, editable=False)
    # Its tasks were deleted; the run is kept for its key.
    pruned = models.BooleanField(default=False, db_default=False, editable=False)
    # For a machine: its state, since when (story time), where BACK leads, and how often it has moved. Only store.machines
    # writes these four, each time with an entry. A run without a machine has the defaults.
    state = models.CharField(max_length=50, blank=True, default="", db_default="", editable=False)
    state_at = models.DateTimeField(null=True, blank=True, editable=False)
    back = models.CharField(max_length=50, blank=True, default="", db_default="", editable=False)
    moves = models.IntegerField(default=0, db_default=0, editable=False)

    objects = models.Manager.from_queryset(TimelineRunQuerySet)()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["entity_label", "entity_id", "timeline", "key"],
                condition=Q(ended_at__isnull=True),
                name="timeline_run_one_open",
            ),
            models.UniqueConstraint(
                fields=["entity_label", "entity_id", "timeline", "key"],
                condition=Q(once=True),
                name="timeline_run_one_ever",
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, end_reason="") | Q(ended_at__isnull=False) & ~Q(end_reason=""),
                name="timeline_run_end_has_reason",
            ),
            models.CheckConstraint(condition=ENTITY_IS_WHOLE, name="timeline_run_entity_whole"),
            models.CheckConstraint(
                condition=in_range("started_at", optional=["ended_at"]), name="timeline_run_in_range"
            ),
            models.CheckConstraint(
                condition=Q(state="", state_at__isnull=True, back="", moves=0)
                | ~Q(state="") & Q(state_at__isnull=False) & in_range("state_at"),
                name="timeline_run_state_whole",
            ),
        ]
        indexes = [
            models.Index(fields=["entity_label", "entity_id", "started_at"], name="timeline_run_entity"),
            # For pages, which count runs of a timeline that are open, and that began or ended recently. With expressions: if it
            # had the columns, PostgreSQL might use it to look for runs of an entity, or for all open runs.
            models.Index(OF_TIMELINE, _ENDED, "started_at", name="timeline_run_of_timeline"),
            # The open runs of a timeline, in the order in which they are planned. If they are few, no others are read.
            models.Index(OF_TIMELINE, "id", condition=Q(_STILL), name="timeline_run_open_of_timeline"),
            # Runs of machines, in the order in which they were recorded.
            models.Index(fields=["id"], condition=Q(_OF_MACHINE), name="timeline_run_of_machine"),
            # Runs of machines: the last one that has ended.
            models.Index(
                fields=["entity_label", "entity_id", "timeline", "key", "ended_at"],
                condition=Q(ended_at__isnull=False, state__gt=""),
                name="timeline_run_last_moved",
            ),
            # Runs of machines in a state, in the order in which they entered it.
            models.Index(
                fields=["timeline", "state", "state_at", "id"],
                condition=Q(ended_at__isnull=True, state__gt=""),
                name="timeline_run_in_state",
            ),
            models.Index(
                fields=["ended_at", "id"],
                condition=Q(ended_at__isnull=False, pruned=False),
                name="timeline_run_prunable",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.timeline} of {self.entity_ref}"

    @property
    def known_since(self) -> datetime:
        """When it was recorded, in story time; if it is only tried out, when it starts. Exits recorded after this end it."""
        return self.recorded_at or self.started_at

    @property
    def is_open(self) -> bool:
        return self.ended_at is None

    @property
    def end(self) -> RunEnd | None:
        """How it ended; None: it has not ended."""
        return None if self.is_open else RunEnd(self.end_code)

    def visits(self, state: str, since: str = "") -> int:
        """How often it entered a state of its machine, since it last entered ``since``, or since it began."""
        return self._visits(state, since).count()

    async def avisits(self, state: str, since: str = "") -> int:
        """The same as ``visits``, for async code."""
        return await self._visits(state, since).acount()

    def _visits(self, state: str, since: str) -> models.QuerySet[RunEntry]:
        entries: models.QuerySet[RunEntry] = self.entries.using(self._state.db)
        if since:
            last = entries.filter(to_state=since).order_by("-seq").values("seq")[:1]
            entries = entries.filter(seq__gt=Coalesce(models.Subquery(last), -1))
        return entries.filter(to_state=state)

    @property
    def is_finished(self) -> bool:
        """Whether it ended because nothing was left to do; False if an exit ended it."""
        return self.end is RunEnd.FINISHED
