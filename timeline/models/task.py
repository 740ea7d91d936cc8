"""``ScheduledTask``: one thing to do once, at a time. This is the main table of the package."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from django.db import connections, models
from django.db.models import F, Q
from django.db.models.functions import Cast
from django.utils.translation import gettext_lazy as _

from timeline.clocks import MachineTime
from timeline.conditions import OneOf
from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.exceptions import TimelineDeprecationWarning
from timeline.ids import uuid7
from timeline.lifecycle import AT_REST, FINAL, LEASED, OPEN, WAITING, ReasonCode, State
from timeline.models.columns import ENTITY_IS_WHOLE, EntityColumns, all_in_range, is_set_if
from timeline.models.entities import MAX_ID, MAX_LABEL, EntityRef
from timeline.models.event import Event
from timeline.models.first_rows import in_states
from timeline.models.kin import about_entity
from timeline.models.run import TimelineRun

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from timeline.hooks import Kept

# Sorted, since they are part of constraints and indexes, where another order would count as a change.
_FINAL = sorted(FINAL)
_LEASED = sorted(LEASED)
_OPEN = sorted(OPEN)
_WAITING = sorted(WAITING)
_UNSTARTED = sorted(OPEN - {State.ACTIVE})


class ScheduledTaskQuerySet(models.QuerySet["ScheduledTask"]):
    """Questions asked of tasks. Questions about time take story time as ``now``."""

    def for_entity(self, entity: models.Model | EntityRef | None) -> ScheduledTaskQuerySet:
        """Tasks of this entity, by any name in its family; None: tasks of no entity."""
        return self.filter(about_entity(entity, using=self.db))

    def open(self) -> ScheduledTaskQuerySet:
        """Tasks that have not ended."""
        return self.filter(state__in=_OPEN)

    def final(self) -> ScheduledTaskQuerySet:
        """Tasks that have ended in any way."""
        return self.filter(state__in=_FINAL)

    def dead_letters(self, group: str = "") -> ScheduledTaskQuerySet:
        """Discarded tasks without a later revision; ``group``: only those of this fingerprint."""
        return self.failed_alike(group).exclude(
            models.Exists(self.model._default_manager.using(self.db).filter(previous=models.OuterRef("pk")))
        )

    def failed_alike(self, group: str = "") -> ScheduledTaskQuerySet:
        """Discarded tasks, redriven or not; ``group`` as for ``dead_letters``."""
        failed = self.filter(state=State.DISCARDED)
        return failed.filter(fingerprint=group) if group else failed

    def would_have_run(self) -> ScheduledTaskQuerySet:
        """Tasks that completed while their timeline was in shadow: no handler was entered."""
        return self.filter(state=State.COMPLETED, reason_code=ReasonCode.SHADOW)

    def upcoming(self, now: datetime | None = None) -> ScheduledTaskQuerySet:
        """Tasks that have not ended, due already or not. ``now`` is deprecated, use ``ahead(now)``: only those still ahead."""
        if now is None:
            return self.open()
        said = "upcoming(now) leaves out what is due, and will be removed. Use ahead(now), or upcoming() for all that is open."
        warnings.warn(said, TimelineDeprecationWarning, stacklevel=2)
        return self.ahead(now)

    def ahead(self, now: datetime) -> ScheduledTaskQuerySet:
        """Tasks whose time is still ahead."""
        return self.filter(state__in=_WAITING, scheduled_at__gt=now)

    def due(self, now: datetime) -> ScheduledTaskQuerySet:
        """Tasks whose time has come, and which no worker has started yet."""
        return self.filter(state__in=_UNSTARTED, scheduled_at__lte=now)

    def overdue(self, now: datetime) -> ScheduledTaskQuerySet:
        """Tasks that have been due for longer than two polls."""
        return self.due(now - get_settings().overdue_after)

    def of_timeline(self, name: str) -> ScheduledTaskQuerySet:
        """Tasks of this timeline, in a run or ad hoc."""
        return self.filter(task_key__startswith=f"{name}.")

    def about(self, label: str) -> ScheduledTaskQuerySet:
        """Tasks about entities of one model, by its label (``accounts.user``); empty: tasks about no entity."""
        return self.filter(entity_label=label)

    def due_between(self, first: datetime, last: datetime) -> ScheduledTaskQuerySet:
        """Tasks due at or after ``first``, and before ``last``, in any state."""
        return self.filter(scheduled_at__gte=first, scheduled_at__lt=last)

    def with_handler(self, task_keys: Collection[str]) -> ScheduledTaskQuerySet:
        """Tasks with these keys, for which the process has handlers."""
        return self.filter(task_key__in=task_keys)

    def of_nobody(self, task_keys: Collection[str], elsewhere: Iterable[str]) -> ScheduledTaskQuerySet:
        """Tasks that nobody runs: of none of these keys, nor of one that begins as the keys of others' tasks do."""
        rows = self.exclude(task_key__in=task_keys)
        for beginning in elsewhere:
            rows = rows.exclude(task_key__startswith=beginning)
        return rows

    def to_stage(self, now: datetime) -> ScheduledTaskQuerySet:
        """Waiting tasks whose time has come, those first that have been due longest."""
        return self.filter(state__in=_WAITING, scheduled_at__lte=now).order_by("scheduled_at", "pk")

    def ready(self) -> ScheduledTaskQuerySet:
        """Tasks that a worker may start, in the order in which it should start them."""
        return self.filter(state=State.AVAILABLE).order_by("priority", "scheduled_at", "pk")

    def not_of_held_entities(self) -> ScheduledTaskQuerySet:
        """Tasks whose entity is not on hold."""
        held = dialect_of(self.db).words["entities_on_hold"]
        condition = f"(timeline_scheduledtask.entity_label, timeline_scheduledtask.entity_id) NOT IN ({held})"
        return cast("ScheduledTaskQuerySet", self.extra(where=[condition]))  # noqa: S610 (ours)

    def taken_of(self, task_keys: Iterable[str], kept: Kept) -> ScheduledTaskQuerySet:
        """Tasks of these kinds, without what is kept from running."""
        return self.with_handler([key for key in task_keys if not kept.covers(key)]).with_parts(kept.parts)

    def with_parts(self, parts: frozenset[str]) -> ScheduledTaskQuerySet:
        """With the conditions that statements have in optional lines of these names."""
        return self.not_of_held_entities() if "on_hold" in parts else self

    def free(self) -> ScheduledTaskQuerySet:
        """Tasks that have no limit."""
        return self.filter(limit_key="")

    def not_waiting_for_a_place(self) -> ScheduledTaskQuerySet:
        """All tasks except those that could be started if their limit had a free place."""
        return self.exclude(state=State.AVAILABLE, limit_key__gt="", slot=0)

    def closing(self) -> ScheduledTaskQuerySet:
        """Tasks that were started, did not complete, and keep their places closed until somebody opens them; by place."""
        # Worded so that the index of places is used.
        return self.filter(slot__gt=0).exclude(state__in=OPEN).order_by("limit_key", "slot")

    def on_their_way(self) -> ScheduledTaskQuerySet:
        """Tasks that are claimed and have not been started, those first whose leases expire first."""
        return self.filter(state=State.PENDING).order_by("lease_expires_at", "pk")

    def waiting_since(self, moments: timedelta) -> ScheduledTaskQuerySet:
        """Claimed tasks whose message was sent so long ago or longer, and may still be on its way."""
        return self.on_their_way().filter(
            sent_at__lt=MachineTime(-moments), lease_expires_at__gt=MachineTime(once=True)
        )

    def given_up(self, since: timedelta = timedelta(0)) -> ScheduledTaskQuerySet:
        """Claimed or active tasks whose lease has expired, by the real clock of the database, so long ago or longer."""
        out = self.filter(state__in=_LEASED, lease_expires_at__lt=MachineTime(-since, once=True))
        return out.order_by("lease_expires_at", "pk")

    def late(self, since: datetime) -> list[ScheduledTaskQuerySet]:
        """Tasks due at or before this time that no worker has started, in three parts, each with an index of its own."""
        due = self.filter(scheduled_at__lte=since)
        return [due.filter(state__in=_WAITING), due.filter(state=State.AVAILABLE), due.filter(state=State.PENDING)]

    def in_order(self) -> ScheduledTaskQuerySet:
        """In the order of their times."""
        return self.order_by("scheduled_at", "pk")

    def first_of(self, states: Collection[str], most: int, *, latest: bool = False) -> ScheduledTaskQuerySet:
        """The earliest tasks in these states (or the latest), in order, by indexes; PostgreSQL reads each state apart."""
        order = ("-scheduled_at", "-pk") if latest else ("scheduled_at", "pk")
        if not connections[self.db].features.supports_slicing_ordering_in_compound:
            return in_states(self, sorted(states)).order_by(*order)[:most]
        if len(states) < 2:
            return self.filter(state__in=sorted(states)).order_by(*order)[:most]
        first, *others = (self.filter(state=state).order_by(*order)[:most] for state in sorted(states))
        return first.union(*others, all=True).order_by(*order)[:most]

    def by_id(self) -> ScheduledTaskQuerySet:
        """In the lock order, sorted after the rows were found: PostgreSQL might read the whole primary key."""
        return self.order_by(Cast("pk", models.TextField()))

    def locked(self, *, skip_locked: bool = False) -> ScheduledTaskQuerySet:
        """Lock the rows: last in the lock order."""
        return self.select_for_update(no_key=True, of=("self",), skip_locked=skip_locked)


class ScheduledTask(EntityColumns):
    """
    One task of an entity's future, present or past.

    ``nominal_at`` is the anchor plus the offset; ``scheduled_at`` is when it is due. ``attempt`` counts starts, and only grows.
    ``failures`` and ``lost`` count against their limits. ``error`` is that of the last failed attempt; the log has those of all
    attempts. The state is changed only by ``timeline.store``.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Most rows are written five times, each time to every index. So there is no index for which another one can be used: rows
    # of a run are found by its unique key; causes and predecessors are indexed only if a row has them, and causes only for ad
    # hoc rows, since the cause of a run's rows is that of the run.
    # PostgreSQL has no foreign key for the run and the cause: see KEEPERS in triggers.py.
    run = models.ForeignKey(
        TimelineRun, null=True, blank=True, db_index=False, on_delete=models.PROTECT, related_name="tasks"
    )
    task_key = models.CharField(max_length=101)
    occurrence = models.CharField(max_length=100, blank=True, default="")
    revision = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=9, choices=State.choices)
    seq = models.PositiveIntegerField(default=0)
    priority = models.SmallIntegerField(default=0)
    queue = models.CharField(max_length=50, default="default")
    nominal_at = models.DateTimeField()
    scheduled_at = models.DateTimeField()
    # The due time of its plan: while it is due then, nobody has decided otherwise. NULL: by no plan.
    planned_at = models.DateTimeField(null=True, blank=True, editable=False)
    anchor = models.CharField(max_length=100, blank=True, default="")
    anchor_value = models.DateTimeField(null=True, blank=True)
    # The day of its anchor, if that is a date. Its midnight is another moment in another time zone.
    anchor_date = models.DateField(null=True, blank=True)
    definition_hash = models.CharField(max_length=16, blank=True, default="")
    expires_at = models.DateTimeField(null=True, blank=True)
    payload = models.JSONField(default=dict, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    lost = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField()
    claim_token = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    # Machine time, as the lease: when its message was last sent. NULL: not yet, or it was handed back.
    sent_at = models.DateTimeField(null=True, blank=True, editable=False)
    worker = models.CharField(max_length=100, blank=True, default="")
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    # Of the last failed attempt: equal for attempts that failed in the same way. Empty: none has failed.
    fingerprint = models.CharField(max_length=16, blank=True, default="", db_default="", editable=False)
    # What it waits for: names of events with blanks between them; the entity as its events are recorded; and the key. These
    # count only while it is scheduled or retryable. An attempt that ends otherwise than by waiting empties them.
    awaits = models.CharField(max_length=500, blank=True, default="", db_default="", editable=False)
    awaits_key = models.CharField(max_length=200, blank=True, default="", db_default="", editable=False)
    awaits_label = models.CharField(max_length=MAX_LABEL, blank=True, default="", db_default="", editable=False)
    awaits_id = models.CharField(max_length=MAX_ID, blank=True, default="", db_default="", editable=False)
    # Whether this is another entity than its own. Emitting an event for that entity does not lock this task: see ``Wake``.
    awaits_other = models.BooleanField(default=False, db_default=False, editable=False)
    # The key of its limit; the place that it holds, 0: none; and until when it holds this: until the end of the "attempt";
    # until its own "end"; or, if it was started and does not complete, until a person has "opened" it. "end+" and "opened+":
    # its work is half done, by an attempt that has ended, or by a revision whose place it took over.
    limit_key = models.CharField(max_length=100, blank=True, default="", db_default="", editable=False)
    slot = models.PositiveSmallIntegerField(default=0, db_default=0, editable=False)
    held_until = models.CharField(max_length=7, blank=True, default="", db_default="", editable=False)
    reason_code = models.CharField(max_length=20, choices=ReasonCode.choices, blank=True, default="")
    reason = models.CharField(max_length=200, blank=True, default="")
    actor = models.CharField(max_length=150, blank=True, default="")
    cause = models.ForeignKey(
        Event, null=True, blank=True, db_index=False, on_delete=models.PROTECT, related_name="tasks_caused"
    )
    # Revisions are pruned together, in one statement; the check of the database is enough.
    previous = models.ForeignKey(
        "self", null=True, blank=True, db_index=False, on_delete=models.DO_NOTHING, related_name="next_revisions"
    )
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(ScheduledTaskQuerySet)()

    class Meta:
        verbose_name = _("scheduled task")
        verbose_name_plural = _("upcoming events")
        permissions = [
            ("cancel_scheduledtask", "Can cancel scheduled task"),
            ("move_scheduledtask", "Can move scheduled task"),
            ("run_now_scheduledtask", "Can run scheduled task now"),
            ("redrive_scheduledtask", "Can redrive scheduled task"),
            ("decide_scheduledtask", "Can decide about steps of scheduled task"),
            ("apply_plan", "Can let scheduled tasks follow a changed timeline"),
            ("view_payload", "Can view payload, result and errors of scheduled task"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "task_key", "occurrence", "revision"],
                condition=Q(run__isnull=False),
                name="timeline_task_revision",
            ),
            models.UniqueConstraint(
                fields=["entity_label", "entity_id", "task_key", "occurrence", "revision"],
                condition=Q(run__isnull=True),
                name="timeline_adhoc_revision",
            ),
            models.UniqueConstraint(
                fields=["run", "task_key", "occurrence"],
                condition=Q(run__isnull=False, state__in=_OPEN),
                name="timeline_task_one_open",
            ),
            models.UniqueConstraint(
                fields=["entity_label", "entity_id", "task_key", "occurrence"],
                condition=Q(run__isnull=True, state__in=_OPEN),
                name="timeline_adhoc_one_open",
            ),
            # Also for rows that have ended: a task that was started and did not complete may keep its place closed.
            models.UniqueConstraint(fields=["limit_key", "slot"], condition=Q(slot__gt=0), name="timeline_task_slot"),
            models.CheckConstraint(
                condition=Q(limit_key="") | Q(slot__gt=0) | Q(lease_expires_at__isnull=True),
                name="timeline_task_has_slot",
            ),
            models.CheckConstraint(
                condition=Q(OneOf(F("state"), sorted(State))),
                name="timeline_task_state_known",
            ),
            models.CheckConstraint(condition=is_set_if("finished_at", FINAL), name="timeline_task_final_finished"),
            models.CheckConstraint(condition=is_set_if("lease_expires_at", LEASED), name="timeline_task_held_by_lease"),
            models.CheckConstraint(
                condition=Q(OneOf(F("reason_code"), sorted(ReasonCode))) | Q(reason_code="", finished_at__isnull=True),
                name="timeline_task_end_has_reason",
            ),
            models.CheckConstraint(condition=ENTITY_IS_WHOLE, name="timeline_task_entity_whole"),
            models.CheckConstraint(
                condition=all_in_range(
                    "nominal_at",
                    "scheduled_at",
                    "created_at",
                    "anchor_value",
                    "expires_at",
                    "started_at",
                    "finished_at",
                ),
                name="timeline_task_in_range",
            ),
        ]
        indexes = [
            models.Index(fields=["scheduled_at", "id"], condition=Q(state__in=_WAITING), name="timeline_task_due"),
            models.Index(
                fields=["task_key", "priority", "scheduled_at", "id"],
                condition=Q(state=State.AVAILABLE, limit_key=""),
                name="timeline_task_free",
            ),
            models.Index(
                fields=["task_key", "limit_key", "priority", "scheduled_at", "id"],
                condition=Q(state=State.AVAILABLE, limit_key__gt=""),
                name="timeline_task_limited",
            ),
            models.Index(
                fields=["lease_expires_at", "id"], condition=Q(state__in=_LEASED), name="timeline_task_given_up"
            ),
            models.Index(fields=["entity_label", "entity_id", "scheduled_at"], name="timeline_task_entity"),
            models.Index(
                fields=["task_key", "state", "scheduled_at"],
                name="timeline_task_kind",
                # Only with these classes PostgreSQL finds keys by their beginning (a timeline), with any collation.
                opclasses=["varchar_pattern_ops", "varchar_ops", "timestamptz_ops"],
            ),
            # Two halves of one index. If it were whole, PostgreSQL might use it to look for ids.
            models.Index(
                fields=["state", "scheduled_at", "id"], condition=Q(state__in=_OPEN), name="timeline_task_open"
            ),
            # With the time of the end, so that a condition for this is checked in the index.
            models.Index(
                fields=["state", "scheduled_at", "id", "finished_at"],
                condition=Q(state__in=_FINAL),
                name="timeline_task_ended",
            ),
            models.Index(
                fields=["cause"], condition=Q(cause__isnull=False, run__isnull=True), name="timeline_task_caused"
            ),
            # For prune, which begins with the rows that ended first.
            models.Index(
                fields=["finished_at"],
                condition=Q(run__isnull=True, revision=1, finished_at__isnull=False),
                name="timeline_adhoc_ended",
            ),
            # Dead letters. Those that were redriven are found by ``previous``.
            models.Index(
                fields=["fingerprint", "finished_at", "id"],
                condition=Q(state=State.DISCARDED),
                name="timeline_task_dead",
            ),
            # For tasks that failed in the same way: the next few by their keys, however many there are.
            models.Index(fields=["fingerprint", "id"], condition=Q(state=State.DISCARDED), name="timeline_task_alike"),
            # For pages, which count cancelled tasks by reason, and recent failures.
            models.Index(
                fields=["reason_code", "task_key", "scheduled_at", "id"],
                condition=Q(state=State.CANCELLED),
                name="timeline_task_cancelled",
            ),
            # All other rows with a rare reason.
            models.Index(
                fields=["reason_code", "state", "scheduled_at", "id"],
                condition=~Q(state=State.CANCELLED) & ~Q(reason_code__in=["", ReasonCode.DONE]),
                name="timeline_task_reason",
            ),
            models.Index(
                fields=["task_key", "finished_at", "id"],
                condition=Q(state=State.DISCARDED),
                name="timeline_task_failed",
            ),
            # Which tasks wait for the events of an entity, its own tasks or others. This is asked for each event. The index is
            # mostly empty.
            models.Index(
                fields=["awaits_label", "awaits_id", "awaits_other"],
                condition=Q(awaits__gt="", state__in=_WAITING),
                name="timeline_task_awaited",
            ),
            models.Index(fields=["previous"], condition=Q(previous__isnull=False), name="timeline_task_previous"),
        ]

    def __str__(self) -> str:
        return f"{self.full_key} of {self.entity_ref}"

    @property
    def timeline(self) -> str:
        """Name of its timeline: the first half of its key."""
        return self.task_key.partition(".")[0]

    @property
    def task_name(self) -> str:
        """Name of its method: the second half of its key."""
        return self.task_key.partition(".")[2]

    @property
    def full_key(self) -> str:
        """Its key; if another task has fanned it out, with ``#`` and the occurrence. For people."""
        return f"{self.task_key}#{self.occurrence}" if self.is_fanned_out else self.task_key

    @property
    def is_fanned_out(self) -> bool:
        """Whether it is one of many that another task of its run has fanned out."""
        return self.run_id is not None and bool(self.occurrence)

    @property
    def is_as_new(self) -> bool:
        """Whether no attempt has failed or was lost since the task was made, or since it was at rest."""
        return not self.attempt or self.reason_code in AT_REST

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in OPEN
