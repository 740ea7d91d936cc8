"""Runs that wait for people: machines in states in which somebody is asked for an event, and until when."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Min

from timeline.definition import Definition
from timeline.models import ScheduledTask, TimelineRun
from timeline.registry import registry
from timeline.store.machines import asking_runs

SHOWN: Final = 50  # Runs on a page.


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


def waiting_for_people(
    machine: str = "",
    *,
    may_say: Callable[[TimelineRun], list[str]],
    after: tuple[datetime, UUID] | None = None,
    using: str,
) -> tuple[list[Asking], bool]:
    """
    List runs in states in which somebody is asked, the longest wait first. Two statements.

    Args:
        machine: Only this machine; empty: all.
        may_say: Gives the events of a run that the reader may send.
        after: The time and the id of the last run that was listed, to continue after it; None: begin with the first.
        using: Database alias.

    Returns:
        A page of runs, and whether there are more.
    """
    asking = [known for known in registry if known.waiting_in and machine in ("", known.name)]
    states = [(known.name, state) for known in asking for state in known.waiting_in]
    runs = asking_runs(states, after=after, most=SHOWN + 1, using=using) if states else []
    due = _due(runs[:SHOWN], asking, using)
    return [Asking(run, may_say(run), due.get(run.pk)) for run in runs[:SHOWN]], len(runs) > SHOWN


def _due(runs: Iterable[TimelineRun], machines: Iterable[Definition], using: str) -> dict[UUID, datetime]:
    """For each run with open timers, when the first of them is due."""
    keys = [known.task_key(name) for known in machines for name, task in known.tasks.items() if task.is_timer]
    timers = ScheduledTask.objects.using(using).open().filter(run__in=[run.pk for run in runs], task_key__in=keys)
    return dict(timers.order_by().values_list("run").annotate(due_at=Min("scheduled_at"))) if keys else {}
