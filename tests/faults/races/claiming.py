"""A cancel against a claim: of a task that has just become available."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from tests.faults.races.duels import duel
from tests.faults.races.race import LATER, Race, cancel_one, nobody_failed
from tests.faults.world import START, check, new_orders
from tests.testapp.models import Order
from timeline.dispatch.claim import claim
from timeline.models import LogEntry, ScheduledTask
from timeline.operations.schedule import schedule


def cancel_against_claim(rounds: int) -> Iterable[str]:
    """Cancelled before it is claimed, or after; never claimed once it is cancelled."""
    results = duel(
        cancel_one, take, new_orders(rounds), lanes=1, make=available, left_first=lambda _, taken: not taken.did
    )

    nobody_failed(results)
    check()
    assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"cancelled"}
    assert [len(cancelled) for cancelled, _taken in results] == [1] * rounds
    ends = LogEntry.objects.filter(to_state="cancelled")
    claimed = [task_id for _cancelled, taken in results for task_id in taken]
    assert sorted(ends.filter(from_state="pending").values_list("task_id", flat=True)) == sorted(claimed)
    return ends.values_list("from_state", flat=True)


def available(order: Order) -> ScheduledTask:
    """The only task there is to claim."""
    made = schedule(
        task_key="world.extra", entity=order, at=START, payload={}, key="k", cause=None, now=START, using="default"
    )
    return made.task


def take(_task: ScheduledTask) -> list[UUID]:
    """Claim what there is."""
    return [task_id for batch in claim(now=LATER, using="default") for task_id in batch.task_ids]


CANCEL_AGAINST_CLAIM: Final = Race("a cancel against a claim", cancel_against_claim, ("available", "pending"))
