"""
What waits for people, each with the time until when: machines in states that ask, and tasks that ask for approval. Tasks that
rest because of a step in doubt are only counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from django.db.models import Min

from timeline.definition import Definition
from timeline.features.machines.store import asking_runs
from timeline.features.waits.reading import Undecided, asking_tasks, still_asking
from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.registry import registry
from timeline.store.index_selection import USUAL

if TYPE_CHECKING:
    from timeline.models.run import TimelineRunQuerySet
    from timeline.models.task import ScheduledTaskQuerySet


SHOWN: Final = 50  # Runs and tasks on a page.
MOST_RESTING: Final = 100  # Up to so many tasks that rest are counted.

Place = tuple[datetime, UUID]  # Since when somebody is asked, and the id of the run or the task.


@dataclass(frozen=True, slots=True)
class Asking:
    """
    A run that waits for people, with the events that the reader may send. ``due_at``: of its earliest timer; None: no timer.
    """

    run: TimelineRun
    events: list[str]
    due_at: datetime | None


class PeoplePage(NamedTuple):
    """What waits for people, in order. ``last``: the place after which there is more; None: this is the end."""

    waiting: list[Asking | Undecided]
    last: Place | None


def waiting_for_people(
    timeline: str = "",
    *,
    may_say: Callable[[TimelineRun], list[str]],
    tasks: ScheduledTaskQuerySet,
    after: Place | None = None,
    now: datetime,
) -> PeoplePage:
    """
    Runs in states that ask, and tasks that ask for approval, the longest wait first: two statements for runs, four for tasks.
    ``tasks``: those that the reader may see. ``may_say``: events that the reader may send. An empty ``timeline``: all.
    ``after``: the place to continue at; None: the first.
    """
    machines = [known for known in registry if known.waiting_in and timeline in ("", known.name)]
    states = [(known.name, state) for known in machines for state in known.waiting_in]
    using, most = tasks.db, SHOWN + 1
    runs = asking_runs(states, after=after, most=most, using=using) if states else []
    asking = asking_tasks(tasks, timeline, after=after, most=most, now=now)
    places = sorted([*map(_place_of, runs), *(each.place for each in asking)])
    last = places[SHOWN - 1] if len(places) > SHOWN else None
    runs = [run for run in runs if last is None or _place_of(run) <= last]
    asking = [each for each in asking if last is None or each.place <= last]
    due = _due(runs, machines, using)
    found: list[tuple[Place, Asking | Undecided]] = [
        *((_place_of(run), Asking(run, may_say(run), due.get(run.pk))) for run in runs),
        *((each.place, each) for each in still_asking(asking, using=using)),
    ]
    return PeoplePage([each for _place, each in sorted(found, key=lambda pair: pair[0])], last)


def asking_states() -> Iterator[tuple[str, str]]:
    """Each machine, and each of its states that waits for people."""
    for known in registry:
        for state in sorted(known.waiting_in):
            yield known.name, state


def runs_asking(timeline: str, state: str, *, using: str) -> TimelineRunQuerySet:
    """Open runs of a machine in a state, the longest there first."""
    runs = TimelineRun.objects.using(using).open().filter(timeline=timeline, state=state, state__gt="")
    return runs.order_by("state_at", "pk")


def tasks_resting(tasks: ScheduledTaskQuerySet, code: ReasonCode) -> ScheduledTaskQuerySet:
    """Tasks that rest for this reason, until somebody decides, the first to look again first."""
    rest = tasks.filter(state=State.RETRYABLE, reason_code=code)
    # As the index has it.
    return rest.exclude(state=State.CANCELLED).exclude(reason_code__in=USUAL).in_order()


def resting(tasks: ScheduledTaskQuerySet) -> int:
    """Count the tasks that rest until somebody says whether a step has happened; up to one more than ``MOST_RESTING``."""
    return tasks_resting(tasks, ReasonCode.IN_DOUBT)[: MOST_RESTING + 1].count()


def _place_of(run: TimelineRun) -> Place:
    assert run.state_at is not None  # noqa: S101 (each run of a machine has it)
    return run.state_at, run.pk


def _due(runs: Iterable[TimelineRun], machines: Iterable[Definition], using: str) -> dict[UUID, datetime]:
    """For each run with open timers, when the first of them is due."""
    keys = [known.task_key(name) for known in machines for name, task in known.tasks.items() if task.is_timer]
    timers = ScheduledTask.objects.using(using).open().filter(run__in=[run.pk for run in runs], task_key__in=keys)
    return dict(timers.order_by().values_list("run").annotate(due_at=Min("scheduled_at"))) if keys else {}
