"""
Every page and list that the admin and the API have, over a million tasks on PostgreSQL: queries, and processor time.

The addresses come from the site's own routes: one that nobody has said how to open stops the run. Each is opened by a
superuser, by an operator whom a policy of the host's shows two timelines, and by staff who own 33,000 entities and see only
what is theirs. There are 10,000 failures in 40 groups. What is counted is the processor time of this process, and that of
PostgreSQL's process for this connection, which Linux tells of a server on the same machine (elsewhere the time that statements
took stands for it): so other work on the machine changes little. Parallel workers are switched off, so that nothing is left
out. What is loaded at the start is kept out of garbage collection, as how-to/deploying.md says; without that, one in a few
answers takes 100 ms more.

``--fill URL`` fills a database that stays, which takes a minute; ``--filled URL`` measures it again and again, ``--only`` and
``--who`` just some addresses and lookers.

Fails where the 95th percentile of the sum is over 300 ms, where an answer needs more than 12 queries (session and user of the
request are two of them), or where a statement reads a table of more than 10,000 rows from end to end.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final, NamedTuple

from benchmarks.addresses import addresses, unknown_routes
from benchmarks.api_pages import own_database
from benchmarks.databases import server_url
from benchmarks.processor import backend_clock

MOST_MS, MOST_QUERIES, LARGE = 300, 12, 10_000
OWNED, FAILED, BOOKINGS, OPEN, DELIVERIES = 33_000, 10_000, 20_000, 20_000, 1_000_000
ATTEMPTS = 1_000  # Of one task.
MAY: Final = (
    *(
        "view_scheduledtask",
        "cancel_scheduledtask",
        "move_scheduledtask",
        "redrive_scheduledtask",
        "view_payload",
        "add_event",
    ),
    *(
        "run_now_scheduledtask",
        "decide_scheduledtask",
        "apply_plan",
        "view_hold",
        "hold_tasks",
        "open_limit",
        "view_user",
        "view_logentry",
    ),
    *("view_booking", "resolve_booking", "view_endpoint", "view_delivery", "change_endpoint"),
)


class Taken(NamedTuple):
    """
    What one answer took.

    Args:
        ours, theirs: Seconds of processor time of this process, and of PostgreSQL.
        statements: Each statement, with its parameters and PostgreSQL's seconds.
    """

    ours: float
    theirs: float
    statements: list[tuple[str, Any, float]]


class Row(NamedTuple):
    """A line of the table."""

    who: str
    page: str
    status: int
    queries: int
    p50: float
    p95: float
    database: float
    worst: str
    reads: str

    @property
    def is_good(self) -> bool:
        """Whether it is within bounds."""
        return self.p95 <= MOST_MS and self.queries <= MOST_QUERIES and not self.reads


def fill(tasks: int) -> None:
    """Make the rows."""
    from django.core.management import call_command
    from django.db import connection

    from benchmarks.models import Member

    call_command("migrate", verbosity=0)
    share = min(1.0, tasks / 1_000_000)
    most = {"owned": OWNED, "failed": FAILED, "bookings": BOOKINGS, "open": OPEN, "deliveries": DELIVERIES}
    sizes = {name: int(number * share) for name, number in most.items()} | {"worn": ATTEMPTS}
    sizes["people"] = (tasks - 9 * sizes["owned"] - sizes["failed"] - sizes["bookings"] - sizes["open"]) // 10
    with connection.schema_editor() as editor:
        editor.create_model(Member)
    with connection.cursor() as cursor:
        for statement in Path(__file__).with_suffix(".sql").read_text().split(";\n"):
            if statement.strip():
                cursor.execute(statement, sizes)
        cursor.execute("VACUUM ANALYZE")


def people() -> dict[str, Any]:
    """Make those who look."""
    from django.contrib.auth.models import Permission
    from django.utils import timezone

    from project.accounts.models import User

    now, staff = timezone.now(), {"is_staff": True}
    given = {"signed_up_at": now, "trial_ends_at": now, **staff}
    root, _made = User.objects.get_or_create(email="root@example.com", defaults={"is_superuser": True, **given})
    operator, _made = User.objects.get_or_create(email="operator@example.com", defaults=given)
    operator.user_permissions.set(Permission.objects.filter(codename__in=MAY))
    User.objects.filter(pk=10).update(**staff)
    return {"superuser": root, "operator": operator, "owner": User.objects.get(pk=10)}


def open_page(client: Any, address: str, clock: Callable[[], float]) -> tuple[Any, Taken]:
    """Open it once."""
    from django.db import connection

    statements: list[tuple[str, Any, float]] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        began = clock()
        try:
            return execute(sql, params, many, context)
        finally:
            statements.append((sql, params, clock() - began))

    with connection.execute_wrapper(watch):
        began, theirs = process_time(), clock()
        answer = client.get(address)
        getattr(answer, "content", b"")
        taken = Taken(process_time() - began, clock() - theirs, statements)
    return answer, taken


def whole_tables(statements: list[tuple[str, Any, float]]) -> str:
    """Name the large tables that one of these statements reads from end to end, with how many rows of it."""
    from django.db import connection, transaction

    found = set[str]()
    for sql, params, _seconds in statements:
        settings, _line, asked = sql.rpartition(";\n")
        if not asked.lstrip("( ").upper().startswith(("SELECT", "WITH")) or "pg_export" in asked:
            continue
        with transaction.atomic(), connection.cursor() as cursor:
            if settings:
                cursor.execute(settings)
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {asked}", params)
            plan = cursor.fetchone()[0]
        [told] = json.loads(plan) if isinstance(plan, str) else plan
        found |= set(_read_whole(told["Plan"]))
    return ", ".join(sorted(found))


def _read_whole(node: dict[str, Any]) -> Iterator[str]:
    rows = (node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)) * node.get("Actual Loops", 1)
    if node["Node Type"] == "Seq Scan" and rows > LARGE:
        yield f"{node['Relation Name']}: {int(rows):,}"
    for part in node.get("Plans", ()):
        yield from _read_whole(part)


def measure(who: str, client: Any, name: str, asked: tuple[str, str], times: int, clock: Callable[[], float]) -> Row:
    """Open a page several times; a list of the API on the next page each time, as long as there is one."""
    said, address = asked
    answer, first = open_page(client, address, clock)
    taken, page = list[Taken](), address
    for _ in range(times):
        got, took = open_page(client, page, clock)
        taken.append(took)
        found = got.json() if got.headers.get("Content-Type", "").endswith("/json") and got.status_code == 200 else None
        page = (found.get("next") if isinstance(found, dict) else None) or address
    sums = sorted((took.ours + took.theirs) * 1000 for took in taken)
    statements = [each for took in taken for each in took.statements]
    sql, _params, seconds = max(statements, key=lambda each: each[2], default=("", None, 0.0))
    return Row(
        who,
        f"{name.partition(':')[0].removeprefix('timeline_')} {name.rpartition('_')[2].rpartition(':')[2]} {said}",
        answer.status_code,
        max(len(took.statements) for took in [first, *taken]),
        median(sums),
        sums[max(0, -(-len(sums) * 95 // 100) - 1)],
        median(took.theirs for took in taken) * 1000,
        f"{seconds * 1000:.0f} ms {sql.rpartition(';' + chr(10))[2][:90]!r}",
        whole_tables(taken[-1].statements),
    )


def main(times: int, only: str, whose: str) -> bool:
    """Measure and print; gives whether all is within bounds."""
    from django.conf import settings
    from django.db import connection
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.TIMELINE = settings.TIMELINE | {"POLICY": "benchmarks.looking.Operators"}
    lookers, found = people(), addresses()
    lookers = {whose: lookers[whose]} if whose else lookers
    if missing := unknown_routes(found):
        raise SystemExit(f"Nobody has said how to open {', '.join(sorted(missing))}.")
    with connection.cursor() as cursor:
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        cursor.execute("UPDATE timeline_identity SET polled_at = clock_timestamp()")
        cursor.execute("SELECT count(*), current_setting('server_version') FROM timeline_scheduledtask")
        print("{:,} tasks, PostgreSQL {}; {} times each\n".format(*cursor.fetchone(), times))
    clock, good = backend_clock(), True
    gc.collect()
    gc.freeze()  # As docs/how-to/deploying.md tells who serves pages.
    print("| who | page | status | queries | p50 ms | p95 ms | of it PostgreSQL | beyond bounds |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for who, person in lookers.items():
        client = Client(raise_request_exception=True)
        client.force_login(person)
        for name, asks in found.items():
            for asked in asks:
                if only and only not in asked[1]:
                    continue
                row = measure(who, client, name, asked, times, clock)
                good = good and row.is_good
                beyond = "" if row.is_good else " ".join(filter(None, [row.worst, row.reads and f"reads {row.reads}"]))
                told = f"{row.queries} | {row.p50:.0f} | {row.p95:.0f} | {row.database:.0f}"
                print(f"| {row.who} | {row.page} | {row.status} | {told} | {beyond} |", flush=True)
    return good


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", default="", help="just addresses with this in them")
    parser.add_argument("--who", default="", choices=("superuser", "operator", "owner"), help="just this looker")
    parser.add_argument("--filled", default="", help="URL of a database that is filled, and stays")
    parser.add_argument("--fill", default="", help="URL of an empty database to fill, which stays; measures nothing")
    arguments = parser.parse_args()
    os.environ |= {"DJANGO_SETTINGS_MODULE": "benchmarks.settings", "BENCHMARK_WEBHOOKS": "1"}

    def site(url: str) -> bool:
        """Set it up on a database, and measure."""
        os.environ["BENCHMARK_DATABASE_URL"] = url
        import django

        django.setup()
        from benchmarks.looking import Owned
        from timeline.registry import registry

        registry.register(Owned)
        if not arguments.filled:
            fill(arguments.tasks)
        return bool(arguments.fill) or main(arguments.times, arguments.only, arguments.who)

    if arguments.fill:
        sys.exit(0 if site(arguments.fill) else 1)
    if arguments.filled:
        sys.exit(0 if site(arguments.filled) else 1)
    with own_database(server_url()) as own:
        within_bounds = site(own)
    sys.exit(0 if within_bounds else 1)
