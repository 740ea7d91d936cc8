"""What waits for people, those first whose time is up first: in two statements, however much waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from timeline.features.machines.people import Asking, asking_states, runs_asking
from timeline.features.waits.reading import Undecided, undecided
from timeline.lifecycle import WAITING
from timeline.models import ScheduledTask, TimelineRun
from timeline.registry import registry
from timeline.timing import LATEST

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.timing import When


@dataclass(frozen=True, slots=True)
class FirstAsked:
    """
    The queries of both statements. Of each kind and state the first few are read, by an index.

    Args:
        tasks: Those that the reader may see.
        most: So many are wanted.
        runs: Whether the reader may see runs, too.
    """

    tasks: ScheduledTaskQuerySet
    most: int
    runs: bool
    now: datetime

    def begin(self) -> list[QuerySet[Any, Any]]:
        """Of the first statement: tasks, runs that wait for longest, and timers that are due soonest."""
        asked: list[QuerySet[Any, Any]] = [part[: self.most] for _when, part in self._approvals()]
        if self.runs:
            asked += [runs_asking(name, state, using=self.tasks.db)[: self.most] for name, state in asking_states()]
            asked += [self._timers(key, state)[: self.most] for key in _timer_keys() for state in sorted(WAITING)]
        return asked

    def go_on(self, found: Sequence[Sequence[Any]]) -> list[QuerySet[Any, Any]]:
        """Of the second: all runs that are needed, and the timers of those that wait. ``found``: of the first."""
        tasks, runs, timers = self._parts(found)
        needed: set[UUID | None] = {task.run_id for _when, task in tasks} | {run_id for run_id, _at in timers}
        needed -= {run.pk for run in runs}
        waiting = [run.pk for run in runs]
        using, keys = self.tasks.db, list(_timer_keys())
        of_runs = ScheduledTask.objects.using(using).filter(
            run__in=waiting, task_key__in=keys, state__in=sorted(WAITING)
        )
        return [
            TimelineRun.objects.using(using).filter(pk__in=[key for key in needed if key is not None]),
            of_runs.order_by().values_list("run_id", "scheduled_at"),
        ]

    def read(
        self,
        found: Sequence[Sequence[Any]],
        more: Sequence[Sequence[Any]],
        may_say: Callable[[TimelineRun], list[str]],
    ) -> list[Asking | Undecided]:
        """Put both together: by the time until when, what has none last. ``may_say``: events that the reader may send."""
        tasks, runs, timers = self._parts(found)
        others, of_runs = more
        known = {run.pk: run for run in [*others, *runs]}
        due: dict[UUID, datetime] = {}
        for run_id, at in [*timers, *of_runs]:
            due[run_id] = min(at, due.get(run_id, LATEST))
        asking = set(asking_states())
        waiting = (
            [run for run in known.values() if run.is_open and (run.timeline, run.state) in asking] if self.runs else []
        )
        told: list[tuple[datetime, datetime, Asking | Undecided]] = [
            (due.get(run.pk, LATEST), run.state_at or self.now, Asking(run, [], due.get(run.pk))) for run in waiting
        ]
        for when, task in tasks:
            task.run = known.get(task.run_id)
            each = Undecided(task, when)
            told.append((each.until, each.since, each))
        first = [each for *_place, each in sorted(told, key=lambda place: place[:2])[: self.most]]
        return [
            Asking(each.run, may_say(each.run), each.due_at) if isinstance(each, Asking) else each for each in first
        ]

    def _parts(
        self, found: Sequence[Sequence[Any]]
    ) -> tuple[list[tuple[When, ScheduledTask]], list[TimelineRun], list[tuple[UUID, datetime]]]:
        whens = [when for when, _part in self._approvals()]
        tasks = [(when, task) for when, part in zip(whens, found, strict=False) for task in part]
        states = len(list(asking_states())) if self.runs else 0
        rest = found[len(whens) :]
        return tasks, [run for part in rest[:states] for run in part], [pair for part in rest[states:] for pair in part]

    def _approvals(self) -> Iterator[tuple[When, ScheduledTaskQuerySet]]:
        for known in registry:
            for key, when in known.approvals.items():
                for part in undecided(self.tasks, key, when, now=self.now):
                    yield when, part

    def _timers(self, key: str, state: str) -> QuerySet[Any, Any]:
        timers = ScheduledTask.objects.using(self.tasks.db).filter(task_key=key, state=state)
        return timers.in_order().values_list("run_id", "scheduled_at")


def _timer_keys() -> Iterable[str]:
    """Timers that may be there while a machine waits for people."""
    for known in registry:
        for name, task in known.tasks.items():
            if task.is_timer and task.when is not None and known.waiting_in & set(task.when.during):
                yield known.task_key(name)
