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

    from timeline.models.run_entry import RunEntry

# The name of a run's timeline, and when it ended, or never: for who asks of all runs of a timeline. See the index by them.
OF_TIMELINE: Final = Func(F("timeline"), template="(%(expressions)s || '')", output_field=models.TextField())
_NEVER: Final = "'9999-01-01 00:00:00+00:00'"
_ENDED: Final = Func(
    F("ended_at"), template=f"COALESCE(%(expressions)s, {_NEVER})", output_field=models.DateTimeField()
)
# Conditions of indexes for one question each: worded so that PostgreSQL takes them for no other, of an entity's runs, say.
_STILL: Final = Exact(_ENDED, RawSQL(_NEVER, (), output_field=models.DateTimeField()))  # noqa: S611 (a constant)
_OF_MACHINE: Final = GreaterThan(
    Func(F("state"), template="(%(expressions)s || '')", output_field=models.TextField()), Value("")
)


class TimelineRunQuerySet(models.QuerySet["TimelineRun"]):
    """Questions asked of runs."""

    def for_entity(self, entity: models.Model | EntityRef | None) -> TimelineRunQuerySet:
        """Runs of this entity, by whichever name of its family; None: of no entity."""
        return self.filter(about_entity(entity, using=self.db))

    def open(self) -> TimelineRunQuerySet:
        """Runs that have not ended."""
        return self.filter(ended_at__isnull=True)

    def of_timeline(self, name: str | models.Expression) -> TimelineRunQuerySet:
        """All runs of a timeline, in the order of the index that finds them."""
        runs = self.alias(its_timeline=OF_TIMELINE, its_end=_ENDED).filter(its_timeline=name)
        return runs.order_by("its_end", "started_at")

    def of_machines(self) -> TimelineRunQuerySet:
        """Runs that are, or were, in a state."""
        return self.filter(_OF_MACHINE)

    def open_of_timeline(self, name: str) -> TimelineRunQuerySet:
        """Runs of a timeline that have not ended, in the order of their ids, by the index that finds them so."""
        return self.alias(its_timeline=OF_TIMELINE).filter(its_timeline=name).still().order_by("pk")

    def still(self) -> TimelineRunQuerySet:
        """Those of a timeline that have not ended, found by the index of all its runs."""
        return self.filter(_STILL)

    def ended_since(self, at: datetime) -> TimelineRunQuerySet:
        """Those of a timeline that have ended after that, found by the same index."""
        return self.alias(its_end=_ENDED).filter(its_end__gt=at, its_end__lt=LATEST)

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
    # Times count from started_at, which may be long ago; of runs that an earlier version began this is not known.
    recorded_at = models.DateTimeField(null=True, blank=True, editable=False)
    # No foreign key of PostgreSQL's: see KEEPERS in triggers.py.
    started_by = models.ForeignKey(Event, null=True, blank=True, on_delete=models.PROTECT, related_name="runs_started")
    ended_at = models.DateTimeField(null=True, blank=True)
    # A RunEnd; empty where an earlier version ended the run. Only timeline.runs writes these three.
    end_code = models.CharField(max_length=20, blank=True, default="", db_default="", editable=False)
    end_reason = models.CharField(max_length=200, blank=True, default="")
    # No second run of its entity, timeline and key begins, ever.
    once = models.BooleanField(default=False, db_default=False, editable=False)
    # Its first task has been let pass by earlier runs of its timeline, which the clock starts: it is asked no more.
    is_cleared = models.BooleanField(default=False, db_default=False, editable=False)
    # Its tasks were deleted, and it is kept for its key.
    pruned = models.BooleanField(default=False, db_default=False, editable=False)
    # Of a machine: where it is, since when (story time), what BACK leads to, and how often it has moved. Only store.machines
    # writes these four, each time with an entry; empty of a run that is no machine's.
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
            # Of pages, which count those of a timeline that are open, and that began or ended lately. By expressions: by the
            # columns, it would tempt PostgreSQL to look for the runs of an entity among all of a timeline, or all open ones.
            models.Index(OF_TIMELINE, _ENDED, "started_at", name="timeline_run_of_timeline"),
            # The open ones of a timeline, in the order in which they are planned: of few among very many, no others are read.
            models.Index(OF_TIMELINE, "id", condition=Q(_STILL), name="timeline_run_open_of_timeline"),
            # Of machines: those recorded last, of whoever may see them.
            models.Index(fields=["id"], condition=Q(_OF_MACHINE), name="timeline_run_of_machine"),
            # Of machines: the last one that has ended.
            models.Index(
                fields=["entity_label", "entity_id", "timeline", "key", "ended_at"],
                condition=Q(ended_at__isnull=False, state__gt=""),
                name="timeline_run_last_moved",
            ),
            # Of machines: those in a state, the one that came there first at first.
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
        """When it was recorded, in story time; as far as is known, when it started. Exits recorded later end it."""
        return self.recorded_at or self.started_at

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.ended_at is None

    @property
    def end(self) -> RunEnd | None:
        """
        How it ended; None: it has not.

        An earlier version writes the text and no code, and leaves the code of a run that it opens again: there the text
        decides.
        """
        if self.is_open:
            return None
        if self.end_code in ("", RunEnd.FINISHED):
            return RunEnd.FINISHED if self.end_reason == RunEnd.FINISHED else RunEnd.EXIT
        return RunEnd(self.end_code)

    def visits(self, state: str, since: str = "") -> int:
        """How often it has come to a state of its machine, since it came to another one the last time, or since it began."""
        return self._visits(state, since).count()

    async def avisits(self, state: str, since: str = "") -> int:
        """``visits``, where it has to be awaited."""
        return await self._visits(state, since).acount()

    def _visits(self, state: str, since: str) -> models.QuerySet[RunEntry]:
        entries: models.QuerySet[RunEntry] = self.entries.using(self._state.db)
        if since:
            last = entries.filter(to_state=since).order_by("-seq").values("seq")[:1]
            entries = entries.filter(seq__gt=Coalesce(models.Subquery(last), -1))
        return entries.filter(to_state=state)

    @property
    def is_finished(self) -> bool:
        """Whether it ended because nothing was left of it; false for one that an exit ended."""
        return self.end is RunEnd.FINISHED
