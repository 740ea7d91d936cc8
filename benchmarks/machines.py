"""
Machines, on PostgreSQL: what a move costs that cancels one timer and makes another, over a bare transaction of the same host,
how many a connection makes a second, and how many ``emit_many`` does.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.databases import server_version, site

PORTION = 1000  # Entities that emit_many is given at a time.


def declare() -> None:
    """Declare a machine of two rests, each with a timer."""
    from timeline import Machine, on
    from timeline.registry import registry

    class Resting(Machine):
        """Is asked, and asked again."""

        entity = "benchmarks.Member"
        starts_on = "joined"
        initial = "asked"
        table = {
            "asked": {"answered": "waits", "late": "over"},
            "waits": {"asked_again": "asked", "late": "over"},
            "over": {},
        }
        timers = {"late": on("asked", "waits", days=30)}

    registry.register(Resting)


def fill(members: int) -> None:
    """Make so many."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE bench_member (id integer PRIMARY KEY, email text NOT NULL, counter integer NOT NULL)"
        )
        cursor.execute("INSERT INTO bench_member SELECT key, '', 0 FROM generate_series(1, %s) AS key", [members])
        cursor.execute("VACUUM ANALYZE")


def each(members: list[Any], act: Callable[[Any], object]) -> list[float]:
    """Save each in a transaction of its own that does something more: milliseconds."""
    from django.db import transaction

    took = []
    for member in members:
        begun = perf_counter()
        with transaction.atomic():
            member.counter += 1
            member.save(update_fields=["counter"])
            act(member)
        took.append(1000 * (perf_counter() - begun))
    return took


def measure(members: int) -> dict[str, Any]:
    """Fill, and move."""
    from django.db import connection

    from benchmarks.models import Member
    from timeline.models import ScheduledTask
    from timeline.shortcuts import emit, emit_many

    declare()
    fill(members)
    emit_many("joined", Member.objects.all())
    with connection.cursor() as cursor:  # As PostgreSQL does by itself within a minute.
        cursor.execute("VACUUM ANALYZE")
    some = list(Member.objects.order_by("pk")[:PORTION])
    each(some, lambda _member: None)  # What is asked once a process is asked here.
    each(some[:10], lambda member: emit("answered", member))
    each(some[:10], lambda member: emit("asked_again", member))
    bare = each(some, lambda _member: None)
    moved = each(some, lambda member: emit("answered", member))
    rest = Member.objects.filter(pk__gt=PORTION)
    begun = perf_counter()
    done = emit_many("answered", rest)
    seconds = perf_counter() - begun
    open_rows = ScheduledTask.objects.filter(finished_at=None).count()
    return {
        "bare_ms": round(median(bare), 2),
        "with_move_ms": round(median(moved), 2),
        "over_it_ms": round(median(moved) - median(bare), 2),
        "moves_a_second_a_connection": round(1000 * len(moved) / sum(moved)),
        "emit_many_moves_a_second": round(done.moved / seconds),
        "timers_open": open_rows,
    }


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=21_000)
    options = parser.parse_args()
    with site():
        print(f"PostgreSQL {server_version()}")
        print(json.dumps(measure(options.members), indent=2))


if __name__ == "__main__":
    main()
