"""
Loops, on PostgreSQL: ``self.each`` over many rows, atomic and plain, beside the same loop by hand; what a batch costs beyond
its body, and how the memory of the process grows.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any

from benchmarks.databases import server_version, site

SIZE = 100  # Rows in a batch.
WARM_UP = 0.1  # Of the batches, after which memory is read first.


def declare() -> None:
    """Declare the two loops."""
    from benchmarks.models import Member
    from timeline import Timeline, step, task
    from timeline.registry import registry

    class Counting(Timeline):
        """Counts up each member."""

        @task(atomic=False)
        def in_transactions(self) -> dict[str, Any]:
            """A transaction a batch."""
            return self.each(self.count, Member.objects.all(), size=SIZE)

        @task(atomic=False)
        def plainly(self) -> dict[str, Any]:
            """As if the outside were called."""
            return self.each(self.call, Member.objects.all(), size=SIZE)

        @step
        def count(self, members: list[Member]) -> dict[str, float]:
            """Count up, in the transaction that records the batch."""
            return body(members)

        @step(atomic=False)
        def call(self, members: list[Member]) -> dict[str, float]:
            """Count up, in no transaction."""
            return body(members)

    registry.register(Counting)


def body(members: list[Any]) -> dict[str, float]:
    """What is done with a batch: one statement."""
    from django.db import connection

    memory.look()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE bench_member SET counter = counter + 1 WHERE id = ANY(%s)", [[member.pk for member in members]]
        )
    return {"members": len(members)}


class Memory:
    """MiB that the process has at a batch and at the end."""

    def __init__(self) -> None:
        self.batches = self.first_at = 0
        self.early = 0.0

    def begin(self, batches: int) -> None:
        """Count anew."""
        self.batches, self.first_at = 0, int(batches * WARM_UP)

    def look(self) -> None:
        """Count a batch."""
        self.batches += 1
        if self.batches == self.first_at:
            self.early = self.now()

    @staticmethod
    def now() -> float:
        """Of the process as a whole."""
        import psutil

        return float(psutil.Process(os.getpid()).memory_info().rss / 2**20)


memory = Memory()


def fill(rows: int) -> None:
    """Make so many members."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bench_member (id integer PRIMARY KEY, email text NOT NULL, counter integer NOT NULL)"
        )
        cursor.execute("INSERT INTO bench_member SELECT key, '', 0 FROM generate_series(1, %s) AS key", [rows])
        cursor.execute("VACUUM ANALYZE bench_member")


def by_hand() -> Iterator[list[Any]]:
    """The same batches, as one writes them without: by the primary key."""
    from benchmarks.models import Member

    last = 0
    while batch := list(Member.objects.filter(pk__gt=last).order_by("pk")[:SIZE]):
        yield batch
        last = batch[-1].pk


def hand_loop(*, atomic: bool) -> None:
    """Do them."""
    from contextlib import nullcontext

    from django.db import transaction

    for batch in by_hand():
        with transaction.atomic() if atomic else nullcontext():
            body(batch)


def our_loop(task_key: str) -> None:
    """Run one task that does them."""
    from timeline.clocks import SteadyClock
    from timeline.engine.groups import run
    from timeline.shortcuts import schedule

    task = schedule(task_key, None, at=datetime.now(UTC)).task
    [done] = run(task_ids=[task.pk], clock=SteadyClock("default"), using="default")
    if done.state != "completed":
        raise RuntimeError(done.error)


def timed(act: Callable[[], object], batches: int) -> tuple[float, float]:
    """Milliseconds a batch, and MiB that the process has grown by from its first tenth on."""
    memory.begin(batches)
    begun = perf_counter()
    act()
    took = perf_counter() - begun
    return 1000 * took / batches, memory.now() - memory.early


def measure(rows: int) -> dict[str, Any]:
    """Both loops, each behind its own by hand."""
    declare()
    fill(rows)
    batches = rows // SIZE
    figures: dict[str, Any] = {"rows": rows, "batches": batches}
    for name, task_key, atomic in (
        ("atomic", "counting.in_transactions", True),
        ("plain", "counting.plainly", False),
    ):
        alone, _grown = timed(partial(hand_loop, atomic=atomic), batches)
        ours, grown = timed(partial(our_loop, task_key), batches)
        figures[name] = {
            "by_hand_ms_a_batch": round(alone, 2),
            "ours_ms_a_batch": round(ours, 2),
            "beyond_ms_a_batch": round(ours - alone, 2),
            "mib_grown": round(grown, 1),
        }
    return figures


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with site():
        print(f"PostgreSQL {server_version()}")
        print(json.dumps(measure(options.rows), indent=2))


if __name__ == "__main__":
    main()
