"""A save of a new date against a move by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from django.db import transaction

from tests.faults.races.duels import duel
from tests.faults.races.race import DAY, OPERATOR, Race, nobody_failed, placed
from tests.faults.world import START, check
from tests.testapp.models import Order
from timeline.models import ScheduledTask
from timeline.operations.move import move

SAVED: Final = START + 3 * DAY
MOVED: Final = START + 4 * DAY


def save_against_move(rounds: int) -> Iterable[str]:
    """The last of them says when; the log has both, and what each of them found."""
    orders = placed(rounds)
    tasks = {task.entity_id: task for task in ScheduledTask.objects.filter(task_key="world.ship")}

    results = duel(
        save,
        lambda order: move(task_ids=[tasks[str(order.pk)].pk], at=MOVED, reason=OPERATOR, now=START, using="default"),
        orders,
        left_first=lambda saved, moved: saved.over_at < moved.over_at,
    )

    nobody_failed(results)
    check()
    outcomes = []
    for task in ScheduledTask.objects.filter(task_key="world.ship").prefetch_related("log"):
        assert task.anchor_value == SAVED
        assert [at for at, _before in moves_of(task)].count(task.scheduled_at) == 1
        assert [before for _at, before in moves_of(task)] == [START + DAY, (SAVED, MOVED)[task.scheduled_at == SAVED]]
        outcomes.append("saved last" if task.scheduled_at == SAVED else "moved last")
    return outcomes


def save(order: Order) -> None:
    """Act: the order ships on another day."""
    with transaction.atomic():
        Order(pk=order.pk, ships_at=SAVED).save()


def moves_of(task: ScheduledTask) -> Iterator[tuple[datetime, datetime]]:
    """From the log: when it was to be due from then on, and before."""
    for entry in sorted(task.log.all(), key=lambda entry: entry.seq):
        yield (
            datetime.fromisoformat(entry.detail["scheduled_at"]),
            datetime.fromisoformat(entry.detail["scheduled_at_before"]),
        )


SAVE_AGAINST_MOVE: Final = Race("a save against a move", save_against_move, ("saved last", "moved last"))
