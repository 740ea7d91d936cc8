"""Prune against a redrive of what it is about to delete: a task of no run, or one of a run that has ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from tests.faults.races.duels import duel
from tests.faults.races.race import LATER, MINUTE, OPERATOR, Race, nobody_failed, placed, tell_planner
from tests.faults.world import START, check, new_orders
from timeline.features.maintenance.prune import Pruned, prune
from timeline.models import LogEntry, ScheduledTask
from timeline.operations.cancel import cancel
from timeline.operations.redrive import redrive


class Ended(NamedTuple):
    """A task that ended: so many minutes after the first of them, so that prune takes no other one of those that are left."""

    minute: int
    task: ScheduledTask


def prune_against_redrive_ad_hoc(rounds: int) -> Iterable[str]:
    """Prune takes all revisions of a task, or none."""
    return _race(revised(rounds), revisions=3)


def prune_against_redrive_in_run(rounds: int) -> Iterable[str]:
    """Prune takes all of a run, or nothing."""
    return _race(ended(rounds), revisions=2)


def revised(count: int) -> list[ScheduledTask]:
    """Tasks of two revisions, both of which were cancelled, as if it had come so. The first ones."""
    first, second = [], []
    for minute, order in enumerate(new_orders(count)):
        at = START + minute * MINUTE
        columns: dict[str, Any] = {"entity_label": "testapp.order", "entity_id": str(order.pk)}
        columns |= {"task_key": "world.extra", "occurrence": "k", "max_attempts": 5}
        columns |= {"state": "cancelled", "reason_code": "operator"}
        columns |= dict.fromkeys(("nominal_at", "scheduled_at", "created_at", "finished_at"), at)
        first.append(ScheduledTask(**columns))
        second.append(ScheduledTask(**columns, revision=2, previous=first[-1]))
    ScheduledTask.objects.bulk_create(first)
    ScheduledTask.objects.bulk_create(second)
    return first


def ended(count: int) -> list[ScheduledTask]:
    """Tasks of runs all of whose tasks were cancelled: one of each."""
    placed(count)
    for minute, task in enumerate(
        ScheduledTask.objects.filter(task_key="world.ship").order_by("pk")
    ):  # Each run ends with its last task, and that moment does not change any more.
        ids = list(ScheduledTask.objects.filter(run=task.run_id).values_list("pk", flat=True))
        cancel(task_ids=ids, reason=OPERATOR, now=START + minute * MINUTE, using="default")
    return list(ScheduledTask.objects.filter(task_key="world.ship").select_related("run").order_by("pk"))


def _race(tasks: list[ScheduledTask], *, revisions: int) -> list[str]:
    tell_planner()

    subjects = [Ended(minute, task) for minute, task in enumerate(tasks)]
    half = len(subjects) // 2

    # In one half they meet where the redrive takes its locks, in the other where it has just let them go.
    results = duel(try_again, take, subjects[:half], lanes=1, left_first=lambda redriven, _taken: bool(redriven.did))
    results += duel(
        try_again,
        take,
        subjects[half:],
        lanes=1,
        head_start=0.002,
        left_first=lambda redriven, taken: redriven.over_at < taken.began_at,
    )

    nobody_failed(results)
    check()
    outcomes = []
    for task, (redriven, taken) in zip(tasks, results, strict=True):
        same = {"task_key": task.task_key, "entity_id": task.entity_id, "occurrence": task.occurrence}
        assert ScheduledTask.objects.filter(**same).count() == (revisions if redriven else 0)
        assert (taken == Pruned()) is bool(redriven)
        outcomes.append("redriven" if redriven else "pruned")
    assert not LogEntry.objects.exclude(task__in=ScheduledTask.objects.all()).exists()
    return outcomes


def try_again(ended: Ended) -> list[ScheduledTask]:
    """Act: redrive the task, if it is there."""
    try:
        return redrive(task_ids=[ended.task.pk], reason=OPERATOR, now=LATER, using="default")
    except ScheduledTask.DoesNotExist:
        return []


def take(ended: Ended) -> Pruned:
    """Act: prune it."""
    return prune(ended_before=START + (ended.minute + 0.5) * MINUTE, limit=1, using="default")


_OUTCOMES: Final = ("redriven", "pruned")
PRUNE_AGAINST_REDRIVE_AD_HOC: Final = Race(
    "prune against a redrive of an ad hoc task", prune_against_redrive_ad_hoc, _OUTCOMES
)
PRUNE_AGAINST_REDRIVE_IN_RUN: Final = Race("prune against a redrive in a run", prune_against_redrive_in_run, _OUTCOMES)
