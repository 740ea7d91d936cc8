"""
Every page and list that the admin and the API have, over a million tasks on PostgreSQL: queries, and processor time.

The addresses come from the site's own routes: one that nobody has said how to open stops the run. Each is opened by a
superuser, by an operator whom a policy of the host's shows two timelines, and by staff who own 33,000 entities and see only
what is theirs. There are 10,000 failures in 40 groups. What is counted is the processor time of this process, and that of
PostgreSQL's process for this connection, which Linux tells of a server on the same machine (elsewhere the time that statements
took stands for it): so other work on the machine changes little. Parallel workers are switched off, so that nothing is left
out.

Fails where the 95th percentile of the sum is over 300 ms, where an answer needs more than 12 queries (session and user of the
request are two of them), or where a statement reads a table of more than 10,000 rows from end to end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple

from benchmarks.api_pages import own_database
from benchmarks.databases import server_url

MOST_MS, MOST_QUERIES, LARGE = 300, 12, 10_000
OWNED, FAILED, BOOKINGS, DELIVERIES = 33_000, 10_000, 20_000, 100_000
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
    owned, failed, bookings = (int(most * share) for most in (OWNED, FAILED, BOOKINGS))
    sizes = {"owned": owned, "failed": failed, "bookings": bookings, "deliveries": int(DELIVERIES * share)}
    sizes["people"] = (tasks - 9 * owned - failed - bookings) // 10
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


def addresses() -> dict[str, list[tuple[str, str]]]:
    """Each route that is read: its name → what is asked, by name, as the end of the address or as all of it."""
    from django.urls import reverse
    from django.utils import timezone

    from timeline.models import BulkAction, ScheduledTask, TimelineRun
    from timeline.webhooks.models import Delivery, Endpoint

    tasks = ScheduledTask.objects.all()
    ahead = tasks.filter(state="scheduled", task_key="trial.expire").in_order()
    deep = ahead[ahead.count() // 3]
    mine = tasks.filter(task_key="owned.renew").in_order()[100]
    dead = tasks.filter(state="discarded", task_key__startswith="trial.").first()
    run = TimelineRun.objects.get(timeline="booking", entity_id="8")
    day = (timezone.now() + timezone.timedelta(days=5)).date()
    at = f"{deep.scheduled_at:%Y-%m-%dT%H:%M:%S.%f}"
    site, api = "admin:timeline_scheduledtask_", "timeline_api:"
    asked: dict[str, list[Any]] = {
        "admin:index": [""],
        f"{site}changelist": [
            *("", "?state=overdue", "?state=scheduled", "?state=completed", "?state=discarded", "?state=cancelled"),
            *("?state=all", "?state=ended", "?state=active", "?timeline=trial", "?timeline=owned", "?timeline=gone"),
            *("?timeline=none", "?task=trial.expire", "?task=gone.rare&state=all"),
            *("?kind=accounts.user", "?kind=admin.logentry"),
            *(f"?day={day}", f"?day={day}&hour=7", f"?day={day}&timeline=trial", "?state=cancelled&reason=operator"),
            *("?state=cancelled&reason=guard&timeline=owned", "?state=discarded&ended=week", "?state=completed&ended=day"),
            *("?q=4711", "?q=accounts.user%204711", f"?q={deep.pk}", "?part", "?state=all&reason=operator&kind=accounts.user"),
            *(f"?after={at}%2B00:00_{deep.pk}", f"?before={at}%2B00:00_{deep.pk}"),
        ],
        f"{site}dead": ["", "?since=week", "?since=day&task=trial.remind", f"?group={dead.fingerprint}"],
        f"{site}redrive": [f"?group={dead.fingerprint}"],
        f"{site}inventory": [""],
        f"{site}timeline": [["trial"], ["owned"], ["booking"]],
        f"{site}health": ["", "?span=week", "?task=trial.remind"],
        f"{site}holds": [""],
        f"{site}hold": ["?what=everything", "?what=timeline:trial", "?what=task:trial.expire", "?what=queue:default",
                        "?label=accounts.user&id=4711"],
        f"{site}limits": [""],
        f"{site}find": ["", "?words=4711", "?words=user4711@example.com", "?words=user47", "?words=nobody",
                        f"?words={deep.pk}"],
        f"{site}entity": ["?label=accounts.user&id=4711", "?label=accounts.user&id=10", "?label=accounts.user&id=13",
                          "?label=accounts.user&id=3", f"?label=admin.logentry&id={mine.entity_id}", "?label=&id=",
                          "?label=portal.booking&id=8"],
        f"{site}people": ["", "?machine=booking"],
        f"{site}plan": ["", "?timeline=trial", "?timeline=owned", "?timeline=booking"],
        f"{site}say": [f"?run={run.pk}&moves={run.moves}&event=operator.resolved"],
        f"{site}what_if": ["?label=accounts.user&id=4711"],
        f"{site}matching": ["", "?timeline=trial", "?state=discarded", "?state=discarded&action=redrive", "?action=cancel",
                            "?timeline=owned&action=cancel"],
        f"{site}bulk": [""],
        f"{site}bulk_action": [[BulkAction.objects.order_by("pk")[0].pk]],
        f"{site}act": [""],
        f"{site}change": [[deep.pk], [dead.pk], [mine.pk]],
        "admin:accounts_user_change": [["4711"]],
        "admin:timeline_webhooks_endpoint_changelist": ["", "?o=-2"],
        "admin:timeline_webhooks_endpoint_add": [""],
        "admin:timeline_webhooks_endpoint_change": [[Endpoint.objects.order_by("pk")[0].pk]],
        "admin:timeline_webhooks_endpoint_replay": [[Endpoint.objects.order_by("pk")[0].pk]],
        "admin:timeline_webhooks_endpoint_history": [[Endpoint.objects.order_by("pk")[0].pk]],
        "admin:timeline_webhooks_endpoint_delete": [[Endpoint.objects.order_by("pk")[0].pk]],
        "admin:timeline_webhooks_delivery_changelist": ["", "?state__exact=failed", "?state__exact=waiting", "?p=9", "?o=7",
                                                        f"?endpoint__id__exact={Endpoint.objects.order_by('pk')[0].pk}"],
        "admin:timeline_webhooks_delivery_change": [[Delivery.objects.order_by("pk")[500].pk]],
        "admin:timeline_webhooks_delivery_history": [[Delivery.objects.order_by("pk")[500].pk]],
        f"{api}task-list": [
            *("", "?ordering=-scheduled_at", "?limit=100", "?state=completed", "?state=discarded", "?state=scheduled"),
            *("?state=scheduled&state=completed", "?state=discarded&state=retryable", "?state=pending", "?task=trial.remind"),
            *("?timeline=trial&state=scheduled&state=completed", "?task=trial.expire", "?task=gone.rare", "?timeline=trial"),
            *("?task=trial.remind&state=discarded", "?timeline=owned", "?timeline=nothing", f"?due_after={at}Z"),
            *("?due_after=2020-01-01T00:00:00Z&due_before=2040-01-01T00:00:00Z", f"?state=scheduled&due_after={at}Z"),
        ],
        f"{api}task-detail": [[deep.pk], [dead.pk], [mine.pk]],
        f"{api}bulk-detail": [[BulkAction.objects.order_by("pk")[0].pk]],
        f"{api}dead-letters": [""],
        f"{api}my-tasks": [""],
        f"{api}user-tasks": [["4711"], ["10"]],
        f"{api}entity-tasks": [["accounts.user", "4711"], ["admin.logentry", mine.entity_id], ["portal.booking", "8"]],
        f"{api}holds": [""],
        f"{api}webhook-endpoints": [""],
        f"{api}webhook-endpoint": [[Endpoint.objects.order_by("pk")[0].pk]],
        f"{api}webhook-deliveries": ["", "?state=failed", "?state=waiting",
                                     f"?endpoint={Endpoint.objects.order_by('pk')[0].pk}"],
        f"{api}webhook-delivery": [[Delivery.objects.order_by("pk")[500].pk]],
        f"{api}schema": [""],
        f"{api}docs": [""],
    }  # fmt: skip
    return {
        name: [
            (str(ask) or "as it opens", reverse(name) + ask)
            if isinstance(ask, str)
            else (" ".join(str(part)[:14] for part in ask), reverse(name, args=ask))
            for ask in asks
        ]
        for name, asks in asked.items()
    }


# Those that only change something, and those of Django's that hold nothing of ours.
NOT_READ: Final = {
    *(
        "task-cancel",
        "task-move",
        "task-run-now",
        "task-redrive",
        "task-step-happened",
        "task-forget-step",
        "task-go-on",
    ),
    *(
        "task-approve",
        "task-reject",
        "bulk",
        "bulk-stop",
        "dead-letters-redrive",
        "entity-preview",
        "events",
        "hold-release",
    ),
    *("webhook-endpoint-disable", "webhook-endpoint-enable", "webhook-endpoint-rotate", "webhook-endpoint-test"),
    *("webhook-endpoint-replay", "nothing-here"),
    *("timeline_webhooks_delivery_add", "timeline_webhooks_delivery_delete"),
}


def routes() -> set[str]:
    """Names of all routes of the admin and the API, as the site has them."""
    from django.urls import get_resolver

    def walk(resolver: Any, space: str) -> Iterator[str]:
        for pattern in resolver.url_patterns:
            if hasattr(pattern, "url_patterns"):
                yield from walk(pattern, pattern.namespace or space)
            elif pattern.name and (space == "timeline_api" or pattern.name.startswith("timeline_")):
                yield f"{space}:{pattern.name}"

    return {name for name in walk(get_resolver(), "") if name.startswith(("admin:", "timeline_api:"))}


def backend_clock() -> Callable[[], float]:
    """Give what tells the processor time that PostgreSQL has spent on this connection, in seconds."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid(), pg_postmaster_start_time()")
        told = Path(f"/proc/{cursor.fetchone()[0]}")
    try:
        if b"postgres" in (told / "cmdline").read_bytes():
            return lambda: int((told / "schedstat").read_text().split()[0]) / 1e9
    except OSError:
        pass
    print("PostgreSQL is not on this machine: the time that statements took stands for its processor time.")
    return perf_counter


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


def main(times: int, only: str) -> bool:
    """Measure and print; gives whether all is within bounds."""
    from django.conf import settings
    from django.db import connection
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.TIMELINE = settings.TIMELINE | {"POLICY": "benchmarks.looking.Operators"}
    lookers, found = people(), addresses()
    known = {name for name in routes() if name.rpartition(":")[2] not in NOT_READ}
    if missing := known - found.keys():
        raise SystemExit(f"Nobody has said how to open {', '.join(sorted(missing))}.")
    with connection.cursor() as cursor:
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        cursor.execute("UPDATE timeline_identity SET polled_at = clock_timestamp()")
        cursor.execute("SELECT count(*), current_setting('server_version') FROM timeline_scheduledtask")
        print("{:,} tasks, PostgreSQL {}; {} times each\n".format(*cursor.fetchone(), times))
    clock, good = backend_clock(), True
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
    parser.add_argument("--filled", default="", help="URL of a database that is filled, and stays")
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
        return main(arguments.times, arguments.only)

    if arguments.filled:
        sys.exit(0 if site(arguments.filled) else 1)
    with own_database(server_url()) as own:
        within_bounds = site(own)
    sys.exit(0 if within_bounds else 1)
