"""What a page shows, and its mark: figures of one statement that are others once something of it has changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import connections
from django.db.models import BigIntegerField, Case, Count, Max, Q, Subquery, Sum, Value, When
from django.db.models.functions import Cast

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.lifecycle import State
from timeline.models import EntityRef, Event, Hold, ScheduledTask, Sign, StepRecord, TimelineRun
from timeline.models.step import origins_of

if TYPE_CHECKING:
    from django.db.models import Aggregate, QuerySet

Told = tuple[Any, ...]

NEWEST: Final = 100  # Of holds, as in ``sql/mark_everything.sql``.


@dataclass(frozen=True)
class Everything:
    """Any task: pages that list them. Its mark also says whether that of anything else may have changed."""

    def mark(self, using: str) -> Told:
        """
        Read the newest rows of each table, by their primary keys.

        Ids are not in the order of commits: so the newest one is read, and the hundredth, which is another one as soon as a row
        comes in between.
        """
        with connections[using].cursor() as cursor:
            cursor.execute(dialect_of(using).sql("mark_everything"))
            return tuple(cursor.fetchone())


@dataclass(frozen=True)
class OneTask:
    """A task: its moves, its run's, and its steps."""

    task_id: UUID

    def mark(self, using: str) -> Told:
        """Read the task and figures of its steps; empty: there is none."""
        try:
            origin = _origin(self.task_id, using)
        except ScheduledTask.DoesNotExist:
            return ()
        steps = StepRecord.objects.filter(origin=origin).values("origin")
        row = (
            ScheduledTask.objects.using(using)
            .filter(pk=self.task_id)
            .values_list(
                "state",
                "seq",
                "run__ended_at",
                "run__moves",
                Subquery(steps.annotate(told=Count("pk")).values("told")),
                Subquery(steps.annotate(told=Sum("done")).values("told")),
                Subquery(steps.annotate(told=Sum("attempt")).values("told")),
                Subquery(steps.annotate(told=Max("recorded_at")).values("told")),
            )
            .first()
        )
        return row or ()


@dataclass(frozen=True)
class OneEntity:
    """An entity: how often its tasks and runs have moved, how many events there are, and what is on hold."""

    label: str
    id: str

    def mark(self, using: str) -> Told:
        """Add up its rows, in one statement."""
        ref = EntityRef(self.label, self.id)
        tasks = ScheduledTask.objects.using(using).for_entity(ref)
        runs = TimelineRun.objects.using(using).for_entity(ref)
        events = Event.objects.using(using).for_entity(ref)
        holds = Hold.objects.using(using)
        holds = holds.filter(pk__in=holds.order_by("-pk").values("pk")[:NEWEST])
        figures = [
            _added_up("tasks", tasks, Count("pk"), Sum("seq"), Count("finished_at")),
            _added_up("runs", runs, Count("pk"), Sum("moves"), Count("ended_at")),
            _added_up("events", events, Count("pk")),
            _added_up("holds", holds, Count("pk"), Count("lifted_at"), Count("released_at")),
        ]
        return tuple(sorted(figures[0].union(*figures[1:], all=True)))


@dataclass(frozen=True)
class EverythingAndWorkers:
    """Any task, and which workers are there: each gives a sign every few seconds, of which only that one is missed is news."""

    def mark(self, using: str) -> Told:
        """Read that of everything, and the workers that give signs and those that do not any more."""
        is_missed = Q(seen_at__lt=MachineTime(-get_settings().missed_after))
        signs = Sign.objects.using(using).annotate(is_missed=Case(When(is_missed, then=True), default=False))
        return (*EVERYTHING.mark(using), *signs.order_by("worker").values_list("worker", "is_missed"))


Subject = Everything | EverythingAndWorkers | OneTask | OneEntity
EVERYTHING: Final = Everything()


def is_restless(subject: Subject, told: Told) -> bool:
    """Whether something of it may change and ``Everything`` not: signs, and records of steps, are written in place."""
    if isinstance(subject, OneTask):
        return bool(told) and told[0] == State.ACTIVE
    return isinstance(subject, EverythingAndWorkers)


@lru_cache(maxsize=4096)
def _origin(task_id: UUID, using: str) -> UUID:
    """The idempotency key of a task: it stays, as the revisions before it have ended."""
    previous = ScheduledTask.objects.using(using).values_list("previous_id", flat=True).get(pk=task_id)
    return origins_of({task_id: previous}, using=using)[task_id]


def _added_up(name: str, rows: QuerySet[Any], *figures: Aggregate) -> QuerySet[Any, Told]:
    """Up to three figures of all rows, as one row; each name but once."""
    told = {f"figure_{place}": Cast(figure, BigIntegerField()) for place, figure in enumerate(figures)}
    missing = {f"figure_{place}": Value(0, BigIntegerField()) for place in range(len(figures), 3)}
    of_all: QuerySet[Any, Any] = (
        rows.order_by().annotate(name_of=Value(name)).values("name_of").annotate(**told, **missing)
    )
    return of_all.values_list("name_of", "figure_0", "figure_1", "figure_2")
