"""
What waits for people: machines in states in which somebody is asked for an event, and tasks that ask for approval, each with
the time until when. And tasks that rest because of a step in doubt, which are counted only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from django.db.models import Min

from timeline.definition import Definition
from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.reading.approvals import Undecided, asking_tasks, still_asking
from timeline.registry import registry
from timeline.store.machines import asking_runs
from timeline.store.ways import USUAL

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

SHOWN: Final = 50  # Runs and tasks on a page.
MOST_RESTING: Final = 100  # Up to so many tasks that rest are counted.

Place = tuple[datetime, UUID]  # Since when somebody is asked, and the id of the run or the task.


@dataclass(frozen=True, slots=True)
class Asking:
    """
    A run that waits for people.

    Args:
        run: In a state in which somebody is asked.
        events: The events that the reader may send.
        due_at: When the earliest of its timers changes the state; None: no timer does.
    """

    run: TimelineRun
    events: list[str]
    due_at: datetime | None


class Page(NamedTuple):
    """
    What waits for people, in the order of a list.

    Args:
        waiting: Runs and tasks.
        last: The place after which there is more; None: this is the end.
    """

    waiting: list[Asking | Undecided]
    last: Place | None


def asks_people() -> bool:
    """Whether any timeline may ask people for something."""
    return any(
        known.waiting_in or known.approvals or any(step.options.once for step in known.steps.values())
        for known in registry
    )


def waiting_for_people(
    timeline: str = "",
    *,
    may_say: Callable[[TimelineRun], list[str]],
    tasks: ScheduledTaskQuerySet,
    after: Place | None = None,
    now: datetime,
) -> Page:
    """
    List runs in states in which somebody is asked, and tasks that ask for approval, the longest wait first.

    Two statements for runs, and four for tasks, if there are such.

    Args:
        timeline: Only this timeline; empty: all.
        may_say: Gives the events of a run that the reader may send.
        tasks: Those that the reader may see.
        after: The place of the last one that was listed, to continue after it; None: begin with the first.
        now: Story time.
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
    return Page([each for _place, each in sorted(found, key=lambda pair: pair[0])], last)


def resting(tasks: ScheduledTaskQuerySet) -> int:
    """Count the tasks that rest until somebody says whether a step has happened; up to one more than ``MOST_RESTING``."""
    in_doubt = tasks.filter(state=State.RETRYABLE, reason_code=ReasonCode.IN_DOUBT)
    # As the index has it.
    return in_doubt.exclude(state=State.CANCELLED).exclude(reason_code__in=USUAL)[: MOST_RESTING + 1].count()


def _place_of(run: TimelineRun) -> Place:
    assert run.state_at is not None  # noqa: S101 (each run of a machine has it)
    return run.state_at, run.pk


def _due(runs: Iterable[TimelineRun], machines: Iterable[Definition], using: str) -> dict[UUID, datetime]:
    """For each run with open timers, when the first of them is due."""
    keys = [known.task_key(name) for known in machines for name, task in known.tasks.items() if task.is_timer]
    timers = ScheduledTask.objects.using(using).open().filter(run__in=[run.pk for run in runs], task_key__in=keys)
    return dict(timers.order_by().values_list("run").annotate(due_at=Min("scheduled_at"))) if keys else {}
