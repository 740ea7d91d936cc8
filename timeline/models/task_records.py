"""``StepRecord``: a step of a task is done, and its result. A step with a record is not done again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.db import connections, models
from django.db.models import Q
from django.utils.translation import pgettext_lazy

from timeline.dialects import dialect_of
from timeline.lifecycle import ReasonCode, State
from timeline.models.task import ScheduledTask

MAX_NAME = 150
REENTERED = "reentered"  # In an entry's detail: how often the handler was entered before in the attempt, and undone.
PROGRESS = "(progress)"  # The name of the one note of a task. No step can have this name.


class StepKind(models.TextChoices):
    """What a record means."""

    DONE = "done", pgettext_lazy("timeline", "done")
    BEGUN = "begun", pgettext_lazy("timeline", "begun")  # A step that may be called only once: how it ended is unknown.
    LOOP = (
        "loop",
        pgettext_lazy("timeline", "under way"),
    )  # A step that is done batch by batch, and has not ended yet.
    WAIT = "wait", pgettext_lazy("timeline", "waiting")  # Not a step: the handler waits for an event.
    OVER = "over", pgettext_lazy("timeline", "over")  # Not a step: a wait has ended, by an event or without one.
    NOTE = "note", pgettext_lazy("timeline", "progress")  # Not a step: the progress that the handler reports.


class StepRecord(models.Model):
    """
    One step of one task. ``origin``: idempotency key, the id of the earliest revision on its way that did not complete. So
    retries, moves and redrives find what was done. ``task_id`` is left out if it equals the origin: a tenth of the record.

    ``digest`` is one of the arguments; empty: the result was erased. ``code`` is one of the timeline's code without its steps,
    and matters only if arguments or order change; empty: somebody decided that the record counts.

    A loop has one record: ``done`` of ``total`` rows, sums in ``result``; ``place`` has the key reached and those of the batch.
    Its ``attempt`` did the last batch; 0: none. A wait: ``place`` is what it waits for and until when; at the end ``result``
    has the id of the event and ``done`` is 1; 0: no event came. ``recorded_at`` is story time.
    """

    origin = models.UUIDField()
    name = models.CharField(max_length=MAX_NAME)
    task_id = models.UUIDField(null=True, blank=True)
    attempt = models.PositiveIntegerField()
    kind = models.CharField(max_length=5, choices=StepKind.choices)
    recorded_at = models.DateTimeField()
    seconds = models.FloatField()
    digest = models.CharField(max_length=16)
    code = models.CharField(max_length=16, blank=True)
    result = models.JSONField(null=True, blank=True)
    place = models.JSONField(null=True, blank=True)
    done = models.BigIntegerField(null=True, blank=True)
    total = models.BigIntegerField(null=True, blank=True)

    class Meta:
        db_table = "timeline_step"
        constraints = [
            models.UniqueConstraint(fields=["origin", "name"], name="timeline_step_once"),
            models.CheckConstraint(condition=Q(kind__in=sorted(StepKind)), name="timeline_step_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}"

    @property
    def by_task(self) -> UUID:
        """Id of the revision that made the record."""
        return self.task_id or self.origin


def recorded_by(task_ids: Collection[UUID]) -> Q:
    """Condition for records that these revisions have made."""
    return Q(task_id__in=task_ids) | Q(task_id=None, origin__in=task_ids)


def origins_of(previous: Mapping[UUID, UUID | None], *, using: str) -> dict[UUID, UUID]:
    """
    Task → its idempotency key: the earliest revision on its way that did not complete. One statement, if any has one before it.
    """
    keys = {task_id: task_id for task_id in previous}
    dialect, again = dialect_of(using), [task_id for task_id, before in previous.items() if before is not None]
    if again:
        with connections[using].cursor() as cursor:
            cursor.execute(dialect.sql("origins"), {"ids": dialect.list_of(task_id.hex for task_id in again)})
            keys |= {UUID(str(task_id)): UUID(str(at)) for task_id, at in cursor.fetchall()}
    return keys


def steps_among(origins: Iterable[UUID], *, using: str) -> models.QuerySet[StepRecord]:
    """The records of steps of these tasks, by their idempotency keys, in the order in which they were made."""
    records = StepRecord.objects.using(using).exclude(kind=StepKind.NOTE)
    return records.filter(origin__in=set(origins)).order_by("pk")


def recorded_among(origins: Iterable[UUID], *, using: str) -> set[UUID]:
    """Which of these tasks, by their idempotency keys, have steps."""
    return set(steps_among(origins, using=using).values_list("origin", flat=True))


def in_doubt_among(origins: Iterable[UUID], *, using: str) -> set[UUID]:
    """Which of these tasks, by their idempotency keys, have a step of which nobody knows how it ended."""
    begun = StepRecord.objects.using(using).filter(origin__in=set(origins), kind=StepKind.BEGUN)
    return set(begun.values_list("origin", flat=True))


def done_among(origins: Iterable[UUID], task_ids: Collection[UUID], *, using: str) -> set[tuple[UUID, int]]:
    """Which of these revisions have done a step, or some of a loop, each with the attempt; given their idempotency keys."""
    done = StepRecord.objects.using(using).filter(origin__in=set(origins), kind__in=(StepKind.DONE, StepKind.LOOP))
    records = done.filter(recorded_by(task_ids)).only("origin", "task_id", "attempt")
    return {(record.by_task, record.attempt) for record in records}


def figures_of_records(origin: UUID) -> list[models.Subquery]:
    """Figures of the records of one task, by its idempotency key, for a query: they are others once a record is."""
    records = StepRecord.objects.filter(origin=origin).values("origin")
    figures = (models.Count("pk"), models.Sum("done"), models.Sum("attempt"), models.Max("recorded_at"))
    return [models.Subquery(records.annotate(told=figure).values("told")) for figure in figures]


class LogEntry(models.Model):
    """
    One fact in the life of a task: a move between states, or a change of its time (``from_state`` = ``to_state``).

    ``detail`` has other changes of the row: ``scheduled_at`` (the new time, ISO 8601); for a failed attempt ``worker`` and
    ``error`` (``class``, ``message``, ``traceback``); and for a reason that the package itself gives ``said``: see
    ``timeline.reasons``. Replaying the log of a task in the order of ``seq``, which has no gaps, gives the row.
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
        # What people decided, by time. Entries of workers and polls, and of events that end runs, nearly all, are not in it.
        indexes = [
            models.Index(
                fields=["at", "id", "actor"],
                condition=~Q(actor="") & ~Q(reason_code=ReasonCode.EXIT.value),
                name="timeline_log_people",
            )
        ]
        verbose_name_plural = "log entries"

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state}"
