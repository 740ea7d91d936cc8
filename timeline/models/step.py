"""``StepRecord``: a step of a task is done, and its result. A step with a record is not done again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.db import OperationalError, ProgrammingError, connections, models
from django.db.models import Q
from django.utils.translation import pgettext_lazy

from timeline.lifecycle import State
from timeline.models.task import ScheduledTask

MAX_NAME = 150
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
    One step of one task.

    ``origin`` is the idempotency key of the task: the id of the earliest revision that leads to it and did not complete. So
    retries, moves and redrives find what was done. The step was done by ``attempt`` of ``by_task``, whose id is in ``task_id``.
    Mostly this is the origin, and then it is left out, as it would be a tenth of the record. ``recorded_at`` is story time.
    ``digest`` is a digest of the arguments of the step; ``code`` is one of the code of the timeline without its steps. If the
    code has changed, this matters only if a step gets other arguments, or comes in another order. ``code`` is empty if somebody
    has decided that the record counts; ``digest`` is empty if the result was erased.

    A loop has one record: ``done`` of ``total`` rows; in ``result``, the sums so far; in ``place``, the primary key that it has
    reached, and the keys of the batch that is under way. Its ``attempt`` is the one that did the last batch; 0: none is done.

    A wait has one, too: in ``place``, what it waits for, and until when. When it is over, ``result`` has the id of the event,
    and ``done`` is 1; or ``done`` is 0: no event came.
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
    Find the idempotency keys of tasks: the id of the earliest revision that leads to a task and did not complete.

    Args:
        previous: Id of a task → id of the revision before it; None: it is the first.
        using: Database alias.

    Returns:
        Id of a task → its key. One statement for each revision on the longest way back; none if no task has an earlier one.
    """
    keys = {task_id: task_id for task_id in previous}
    left = {task_id: before for task_id, before in previous.items() if before is not None}
    while left:
        rows = ScheduledTask.objects.using(using).filter(pk__in=set(left.values()))
        earlier = {pk: (state, before) for pk, state, before in rows.values_list("pk", "state", "previous_id")}
        open_ended = {pk: at for pk, at in left.items() if earlier[at][0] != State.COMPLETED}
        keys |= open_ended
        left = {pk: before for pk, at in open_ended.items() if (before := earlier[at][1]) is not None}
    return keys


def steps_among(origins: Iterable[UUID], *, using: str) -> models.QuerySet[StepRecord]:
    """The records of steps of these tasks, by their idempotency keys, in the order in which they were made."""
    records = StepRecord.objects.using(using).exclude(kind=StepKind.NOTE)
    return records.filter(origin__in=set(origins)).order_by("pk")


def recorded_among(origins: Iterable[UUID], *, using: str) -> set[UUID]:
    """Which of these tasks, by their idempotency keys, have steps. None has, if ``migrate`` has not made the table yet."""
    records = steps_among(origins, using=using)
    try:
        return set(records.values_list("origin", flat=True))
    except (ProgrammingError, OperationalError):
        if StepRecord._meta.db_table in connections[using].introspection.table_names():
            raise
        return set()
