"""Runs of slots: decided on, begun, and made at once when somebody ends the run ahead, or has it run early."""

from __future__ import annotations

import logging
from collections.abc import Sequence, Set
from datetime import datetime
from uuid import UUID

from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.features.recurring.planner import Due, Known, Recurrence, recurrence
from timeline.features.recurring.store import last_slots, try_system, waiting_among
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.entities import NO_ENTITY
from timeline.registry import registry
from timeline.store.run_insert import Beginning, begin_runs, constantly, plan_runs

logger = logging.getLogger("timeline")


def decide(definition: Definition, runs: Sequence[TimelineRun], waiting: Set[UUID], now: datetime) -> Recurrence | None:
    """Decide what to do for a timeline; None: it has no slot left. An error in one declaration does not stop the others."""
    known = [Known(run.started_at, run.key, run.pk in waiting, run.recorded_at) for run in runs] + [None, None]
    grace = get_settings().overdue_after
    if definition.recurring is None:
        return None
    try:
        return recurrence(definition.recurring, known[0], known[1], grace=grace, now=now)
    except OverflowError:
        logger.error("The timeline %s has no slot any more.", definition.name)
        return None


def begin_slots(wanted: Sequence[tuple[Definition, Due]], *, now: datetime, using: str) -> list[Beginning]:
    """Begin runs for slots: one statement for each table, however many there are."""
    beginnings = []
    for definition, due in wanted:
        system = {"": [definition]}
        [planned] = plan_runs(system, {NO_ENTITY: None}, key=due.key, begins=constantly(due.at), now=now)
        if planned.problem is not None:
            logger.error("The timeline %s has no proper time: %s", definition.name, planned.problem.in_english())
            continue
        planned.change(once=True)
        beginnings.append(planned)
    return begin_runs(beginnings, now=now, using=using)


def make_next(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> None:
    """
    Begin the runs of the next slots, where runs ahead have ended or become due early. If somebody has the lock of system
    timelines, polls do it when the old slot has passed. ``tasks``: changed in the caller's transaction.
    """
    of_runs = [task for task in tasks if not task.entity_label and task.run_id is not None]
    if not of_runs:
        return
    names = {task.timeline for task in of_runs}
    clocks = [known for known in registry if known.recurring is not None and known.name in names]
    if not clocks or not get_settings().AUTOSTART or not try_system(using=using):
        return
    runs = last_slots([known.name for known in clocks], using=using)
    touched = {task.run_id for task in of_runs}
    ahead = [run for run, *_before in runs.values() if run.pk in touched and run.started_at > now]
    early = {
        task.run_id for run in ahead for task in of_runs if task.run_id == run.pk and _is_early(task, run.started_at)
    }
    waiting = waiting_among(ahead, using=using) - early
    there = {run.timeline for run in ahead}
    answers = [(known, decide(known, runs[known.name], waiting, now)) for known in clocks if known.name in there]
    wanted = [(known, due) for known, answer in answers if answer is not None for due in answer.begin]
    begin_slots(wanted, now=now, using=using)


def _is_early(task: ScheduledTask, slot: datetime) -> bool:
    return task.is_open and task.scheduled_at < slot
