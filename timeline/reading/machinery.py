"""Measure: the numbers that meters read again and again, in a few statements that cost the same for any number of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Count, IntegerField, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.expressions import Expression, RawSQL
from django.db.models.functions import Coalesce

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.lifecycle import State
from timeline.models import Hold, Identity, LogEntry, RollUp, ScheduledTask, Sign, Total
from timeline.reading.attention import MAX_COUNTED, Waiting, asks_of_overdue, asks_of_waiting
from timeline.registry import registry
from timeline.store.task_key_stats import left_out

MOST: Final = 100  # Workers that are listed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The numbers of a database at one moment. A count of tasks stops at ``MAX_COUNTED``."""

    totals: list[
        Total
    ]  # Endings of each kind of task since counting began, in the order in which it was first counted.
    uncounted: int  # Numbers of the log that are not counted into totals yet.
    available: dict[str, int]  # Task key → tasks that a worker may start, for each kind that this process knows.
    pending: int
    active: int
    stuck: int  # Claimed or active tasks whose lease ran out three polls ago.
    overdue: int  # Due for longer than two polls, not on hold, and waiting for no place of a limit.
    oldest_overdue_at: datetime | None
    holds: int
    polled_at: datetime | None  # Last sign of a poller, by the database's real clock; None: never.
    workers: int  # How many gave a sign and were not found to be gone.
    workers_missed: int  # How many of them have an overdue sign.
    signed_at: datetime | None
    waiting: Waiting  # How much waits for a person; endpoints of webhooks have a gauge of their own.


def measure(*, now: datetime, using: str) -> Measured:
    """Look at one database: five statements."""
    tasks, patience = ScheduledTask.objects.using(using), 3 * get_settings().POLL_INTERVAL
    free = tasks.taken_of(registry.task_keys(), left_out(using=using))
    late = dict(asks_of_overdue(free, now=now))
    asks = list(enumerate(asks_of_waiting(tasks, now=now)))
    numbers = {
        "pending": _bounded(tasks.on_their_way()),
        "active": _bounded(tasks.filter(state=State.ACTIVE).in_order()),
        "stuck": _bounded(tasks.given_up(patience)),
        "holds": _bounded(Hold.objects.using(using).open().oldest_first()),
    }
    found = _one_row(
        {
            **numbers,
            **{f"late_{part}": _bounded(rows) for part, rows in late.items()},
            **{f"oldest_{part}": _first(rows, "scheduled_at") for part, rows in late.items()},
            **{f"waits_{number}": _bounded(each.rows) for number, each in asks},
            "counted": _first(RollUp.objects.using(using).filter(pk=1), "counted"),
            "logged": _first(LogEntry.objects.using(using).order_by("-pk"), "pk"),
        },
        using,
    )
    signs = Sign.objects.using(using).aggregate(
        workers=Count("pk"),
        workers_missed=Count("pk", filter=Q(seen_at__lt=MachineTime(-get_settings().missed_after))),
        signed_at=Max("seen_at"),
    )
    oldest = [at for part in late if (at := found.get(f"oldest_{part}"))]
    counts: Counter[str] = Counter()
    for number, each in asks:
        counts[each.name] = min(counts[each.name] + found.get(f"waits_{number}", 0), MAX_COUNTED)
    return Measured(
        totals=list(Total.objects.using(using).order_by("pk")),
        uncounted=max((found.get("logged") or 0) - (found.get("counted") or 0), 0),
        available=_available(using),
        overdue=min(sum(found.get(f"late_{part}", 0) for part in late), MAX_COUNTED),
        waiting=Waiting.of(counts),
        oldest_overdue_at=min(oldest, default=None),
        polled_at=found.get("polled_at"),
        **{name: found.get(name, 0) for name in numbers},
        **signs,
    )


def _bounded(rows: QuerySet[Any]) -> Expression:
    """How many rows a query finds, up to the bound: ordered by an index, because otherwise it might read a whole table."""
    try:
        sql, given = _told(rows.values("pk")[:MAX_COUNTED])
    except EmptyResultSet:  # For example if everything is on hold.
        return Value(0)
    return RawSQL(f"SELECT count(*) FROM ({sql}) AS bounded", given, IntegerField())  # noqa: S608, S611 (ours)


def _first(rows: QuerySet[Any], column: str) -> Expression:
    field = rows.model._meta.pk if column == "pk" else rows.model._meta.get_field(column)
    try:
        return RawSQL(*_told(rows.values(column)[:1]), field)  # noqa: S611 (ours)
    except EmptyResultSet:
        return Value(None, field)


def _told(rows: QuerySet[Any]) -> tuple[str, Sequence[Any]]:
    """The statement of a query as it is: a ``Subquery`` renames its tables, but not in the SQL that ``taken_of`` adds."""
    sql, given = rows.query.get_compiler(using=rows.db).as_sql()
    return sql, given


def _one_row(asked: dict[str, Expression], using: str) -> dict[str, Any]:
    """Read everything in one statement, with the last sign of a poller. Empty: the database was never set up."""
    rows = Identity.objects.using(using).annotate(**asked).values("polled_at", *asked)
    return rows.first() or {}


def _available(using: str) -> dict[str, int]:
    task_keys, dialect = registry.task_keys(), dialect_of(using)
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("available"), {"task_keys": dialect.list_of(task_keys), "most": MAX_COUNTED})
        return dict(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class WorkerSign:
    """The last sign of a worker, by the database's real clock; ``is_missed``: the next is overdue, it may be gone."""

    worker: str
    seen_at: datetime
    ago: timedelta
    active: int
    is_missed: bool


def latest_signs(*, using: str) -> QuerySet[Sign]:
    """Signs of workers that were not found to be gone, in one statement; ``as_seen`` takes its rows."""
    running = ScheduledTask.objects.using(using).filter(state=State.ACTIVE, worker=OuterRef("worker")).order_by()
    counts = running.values("worker").annotate(count=Count("pk")).values("count")
    signs = Sign.objects.using(using).annotate(machine_time=MachineTime(), active=Coalesce(Subquery(counts), 0))
    return signs.order_by("-seen_at", "worker")[:MOST]


def as_seen(signs: Iterable[Sign]) -> list[WorkerSign]:
    """The workers, the latest sign first."""
    return [_as_seen(sign) for sign in sorted(signs, key=lambda sign: (-sign.seen_at.timestamp(), sign.worker))]


def _as_seen(sign: Sign) -> WorkerSign:
    machine_time, active = sign.machine_time, sign.active  # type: ignore[attr-defined]
    ago = max(machine_time - sign.seen_at, timedelta())
    return WorkerSign(sign.worker, sign.seen_at, ago, active, ago > get_settings().missed_after)
