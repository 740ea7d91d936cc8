"""
What an empty poll, a claim of 100, a cancel by entity and an entity's page cost as the table grows, on PostgreSQL.

Nine of ten rows have ended. Each size is filled up from the one before, in a database of the benchmark's own. Figures of one
machine at one moment: compare the sizes of one run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.databases import server_version, site
from benchmarks.throughput import Nowhere

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
AT_ONCE = 100  # Rows of a claim.
SLICE = 50_000  # People in one statement of the fill.


@contextmanager
def without_indexes(table: str) -> Iterator[None]:
    """Take the indexes of a table away, but for its primary key, and make them anew at the end: faster by far."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s AND indexname NOT LIKE '%%pkey'", [table]
        )
        indexes = cursor.fetchall()
        for name, _definition in indexes:
            cursor.execute(f"DROP INDEX {connection.ops.quote_name(name)}")
        yield
        cursor.execute("SET maintenance_work_mem = '512MB'")
        for _name, definition in indexes:
            cursor.execute(definition)


def fill(tasks: int) -> None:
    """Make it so many rows."""
    from django.db import connection

    from timeline.models import TimelineRun

    there = TimelineRun.objects.count()
    sql = Path(__file__).with_suffix(".sql").read_text()
    with without_indexes("timeline_scheduledtask"), connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # Foreign keys are as they should be.
        for first in range(there + 1, tasks // 10 + 1, SLICE):
            cursor.execute(sql, {"first": first, "last": min(first + SLICE - 1, tasks // 10)})
        cursor.execute("SET session_replication_role = origin")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
        cursor.execute("CHECKPOINT")


def timed(call: Callable[[], Any], times: int, before: Callable[[], Any] = lambda: None) -> list[float]:
    """Call it so often; give the milliseconds each call took. What comes before each is not counted."""
    took = []
    for _ in range(times):
        before()
        started = perf_counter()
        call()
        took.append((perf_counter() - started) * 1000)
    return took


def empty_poll() -> None:
    """Find nothing."""
    from timeline.clocks import story_now
    from timeline.dispatch.poll import dispatch

    if any(dispatch(sender=Nowhere(), now=story_now("default"), using="default")):
        raise SystemExit("There was something.")


def end_claimed() -> None:
    """End what was claimed."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("""
            UPDATE timeline_scheduledtask SET state = 'cancelled', reason_code = 'operator', finished_at = now(),
                lease_expires_at = NULL
            WHERE state = 'pending'
        """)


def make_ready() -> None:
    """
    Make as many rows available as one claim takes, in place of those that were claimed before.

    Of a kind that workers have seen to be fast: of any other only a few are on their way at a time.
    """
    from django.db import transaction
    from django.utils import timezone

    from project.accounts.models import User
    from timeline.dispatch.worker_signs import keep_paces
    from timeline.shortcuts import schedule

    keep_paces({"nothing.plain": 0.001}, using="default")
    end_claimed()
    with transaction.atomic():
        for user in User.objects.order_by("pk")[:AT_ONCE]:
            schedule("nothing.plain", user, at=timezone.now())


def claim_ready() -> None:
    """Claim them."""
    from timeline.clocks import story_now
    from timeline.dispatch.claim import claim

    claimed = claim(limit=AT_ONCE, now=story_now("default"), using="default")
    if sum(len(batch.task_ids) for batch in claimed) != AT_ONCE:
        raise SystemExit("Not all were claimed.")


def cancels(times: int) -> list[Callable[[], Any]]:
    """Make the calls, each of which ends a run with ten open tasks."""
    from project.accounts.models import User
    from timeline.models import TimelineRun
    from timeline.shortcuts import leave

    ids = TimelineRun.objects.open().values_list("entity_id", flat=True)[:times]
    users = User.objects.filter(pk__in=[int(key) for key in ids])
    return [partial(leave, "nothing", user, reason="measured") for user in users]


def pages() -> Callable[[], Any]:
    """Make the call that opens an entity's page, of another entity each time."""
    from django.test import Client
    from django.urls import reverse
    from django.utils import timezone

    from project.accounts.models import User

    client, number = Client(), iter(range(1, 1_000_000))
    facts = {"is_staff": True, "is_superuser": True, "signed_up_at": timezone.now(), "trial_ends_at": timezone.now()}
    client.force_login(User.objects.get_or_create(email="staff", defaults=facts)[0])
    where = reverse("admin:timeline_scheduledtask_entity")
    return lambda: client.get(where, {"label": "accounts.user", "id": 7 * next(number)}).content


def measure(tasks: int, times: int) -> dict[str, list[float]]:
    """Fill up to this size, and measure."""
    started = perf_counter()
    fill(tasks)
    print(f"{tasks:,} rows, filled in {perf_counter() - started:.0f} s", flush=True)
    ends = iter(cancels(times))

    def cancel() -> None:
        next(ends)()

    claims = timed(claim_ready, times, before=make_ready)
    end_claimed()
    return {
        "claim of 100": claims,
        "empty poll": timed(empty_poll, times),
        "cancel by entity": timed(cancel, times),
        "entity's page": timed(pages(), times),
    }


def main(sizes: list[int], times: int) -> None:
    """Measure and print."""
    from django.conf import settings

    settings.ALLOWED_HOSTS = ["testserver"]
    print(f"PostgreSQL {server_version()}, {times} times each: median and p95 in ms")
    found = {size: measure(size, times) for size in sorted(sizes)}
    print(f"\n{'rows':>12}" + "".join(f"{name:>20}" for name in next(iter(found.values()))))
    for size, took in found.items():
        print(f"{size:>12,}" + "".join(f"{median(ms):>12.2f} {quantiles(ms, n=20)[-1]:>7.2f}" for ms in took.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--times", type=int, default=40)
    arguments = parser.parse_args()
    with site():
        main(arguments.sizes, arguments.times)
