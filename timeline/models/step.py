"""``StepRecord``: that a step of a task is done, and what it gave. What is recorded is not done again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from django.db import OperationalError, ProgrammingError, connections, models
from django.db.models import Q
from django.utils.translation import pgettext_lazy

from timeline.lifecycle import State
from timeline.models.task import ScheduledTask

MAX_NAME = 150
PROGRESS = "(progress)"  # The name of the one note that a task has: no step can be called that.


class StepKind(models.TextChoices):
    """What a record says."""

    DONE = "done", pgettext_lazy("timeline", "done")
    BEGUN = "begun", pgettext_lazy("timeline", "begun")  # A step that may be called once: how it ended is not known.
    LOOP = (
        "loop",
        pgettext_lazy("timeline", "under way"),
    )  # A step that is taken batch by batch, and not at its end yet.
    WAIT = "wait", pgettext_lazy("timeline", "waiting")  # No step: the handler waits for an event.
    OVER = "over", pgettext_lazy("timeline", "over")  # No step: a wait, and which event ended it, if one did.
    NOTE = "note", pgettext_lazy("timeline", "progress")  # No step: how far the handler says it is.


class StepRecord(models.Model):
    """
    One step of one task.

    ``origin`` is the task's idempotency key: the earliest revision that leads to it and did not complete. So a retry, a move
    and a redrive find what was done. ``attempt`` of ``by_task`` has done it: ``task_id``, which may be left out where it is the
    origin, as it mostly is: that is a tenth of a record. ``recorded_at`` is story time. ``digest`` is of
    what the step was given, ``code`` of the timeline as it was, but for its steps: where the code has changed since, it is
    noticed if a step is given something else, or comes in another order. ``code`` is empty where somebody has decided that it
    counts; ``digest``, where what the step gave was erased.

    A loop has one record: ``done`` of ``total`` rows, in ``result`` the sums so far, in ``place`` the primary key that it has
    come to, and the keys of the batch that is under way. Its ``attempt`` is that which did the last batch; 0: none is done.

    A wait has one, too: in ``place`` what for, and until when; once it is over, in ``result`` the id of
    the event, and 1 ``done``, or 0: none came.
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
        """Id of the revision that has recorded it."""
        return self.task_id or self.origin


def recorded_by(task_ids: Collection[UUID]) -> Q:
    """The records that these revisions have made."""
    return Q(task_id__in=task_ids) | Q(task_id=None, origin__in=task_ids)


def origins_of(previous: Mapping[UUID, UUID | None], *, using: str) -> dict[UUID, UUID]:
    """
    Find the idempotency keys of tasks: each the id of the earliest revision that leads to it and did not complete.

    Args:
        previous: Id of a task → that of the revision before it; None: it is the first.
        using: Database alias.

    Returns:
        Id of a task → its key. One statement for each revision that the longest way back has; none, where nothing has one.
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
    """The records of steps of these tasks, by their idempotency keys, in the order they were made."""
    records = StepRecord.objects.using(using).exclude(kind=StepKind.NOTE)
    return records.filter(origin__in=set(origins)).order_by("pk")


def recorded_among(origins: Iterable[UUID], *, using: str) -> set[UUID]:
    """Which of these tasks, by their idempotency keys, have steps. None has one where ``migrate`` has not made the table."""
    records = steps_among(origins, using=using)
    try:
        return set(records.values_list("origin", flat=True))
    except (ProgrammingError, OperationalError):
        if StepRecord._meta.db_table in connections[using].introspection.table_names():
            raise
        return set()
