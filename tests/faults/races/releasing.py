"""A worker that gives back a group against events that end all its runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from django.db import connection, transaction

from tests.faults.races.duels import duel
from tests.faults.races.race import LATER, Race, begun, due, in_parts, nobody_failed, placed
from tests.faults.world import check
from tests.testapp.models import Order
from timeline.engine.groups import Attempt, Watch, run_begun
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import emit_many

AT_ONCE: Final = 25  # Rows that both take.
LONGEST: Final = 1.0  # Seconds that the third one holds its lock, if the others do not come.


class Stopping(Watch):
    """Tells a worker to give back what it began."""

    def stopping(self) -> bool:
        """At once."""
        return True


def release_against_exits(rounds: int) -> Iterable[str]:
    """
    They do not wait for each other in a circle, whatever order the group is in.

    A task in the middle is locked by somebody else: had they two orders, each would by then hold what the other wants next.
    """
    placed(rounds)
    groups = in_parts(begun(due("share")), AT_ONCE)

    results = duel(
        lambda group: run_begun(group, clock=lambda: LATER, using="default", watch=Stopping()),
        close,
        [group if number % 2 else group[::-1] for number, group in enumerate(groups)],
        lanes=1,
        make=with_one_held,
        left_first=lambda _released, found: found.did == {"retryable"},
    )

    nobody_failed(results)
    check()
    return _ends().values_list("from_state", flat=True)


def with_one_held(group: list[Attempt]) -> list[Attempt]:
    """The group; a task in the middle of it is locked until both wait."""
    held = threading.Event()
    middle = sorted(attempt.task.pk for attempt in group)[len(group) // 2]
    threading.Thread(target=hold, args=(middle, held)).start()
    assert held.wait(120)
    return group


def hold(task_id: UUID, held: threading.Event) -> None:
    """Lock a task until two wait for a lock."""
    try:
        with transaction.atomic():
            ScheduledTask.objects.select_for_update().get(pk=task_id)
            held.set()
            end = time.monotonic() + LONGEST
            while waiting() < 2 and time.monotonic() < end:
                time.sleep(0.002)
    finally:
        connection.close()


def waiting() -> int:
    """How many wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_clear_snapshot()"
        )  # A transaction goes on seeing who was connected when it first asked.
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def close(group: list[Attempt]) -> set[str]:
    """End the runs; tell in what states it found the tasks."""
    ids = [attempt.task.entity_id for attempt in group]
    emit_many("order.closed", Order.objects.filter(pk__in=ids), key="closed")
    return set(_ends().filter(task__in=[attempt.task for attempt in group]).values_list("from_state", flat=True))


def _ends():
    return LogEntry.objects.filter(to_state="cancelled", task__task_key="world.share")


RELEASE_AGAINST_EXITS: Final = Race("a release against exits", release_against_exits, ("active", "retryable"))
