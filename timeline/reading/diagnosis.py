"""Diagnose: are due tasks being run? The questions of a probe, in a few bounded statements."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from django.db import connections, router
from django.db.models import Count, Exists, F, OuterRef, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.features.holds.store import OnHold
from timeline.hooks import hooks
from timeline.lifecycle import OPEN, ReasonCode, State
from timeline.models import Hold, Identity, ScheduledTask
from timeline.reading.attention import (
    MAX_COUNTED,
    Waiting,
    as_counted,
    asks_of_overdue,
    asks_of_waiting,
    told_count,
)
from timeline.registry import registry
from timeline.signals import Trouble, diagnosing
from timeline.store.bounded_counts import DETAIL, KIND, Counted, Pairs, counted_apart, counts_of
from timeline.store.multi_query import Words, gather
from timeline.store.transactions import AS_IT_IS, guided
from timeline.store.triggers import missing_among
from timeline.timing import told_time

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


RECENTLY: Final = timedelta(hours=24)  # A discard is reported for so long, unless it is redriven.
EARLIER: Final = timedelta(weeks=1)  # A discarded task is found if it was due at most so long before it ended.
MOST_NAMED: Final = 10  # Tasks in a sentence.
MOST_COMMANDS: Final = 3  # Commands in a sentence.
LATE: Final = 60  # Poll intervals that a task may wait before something is wrong: a minute by default.


LONG: Final = timedelta(minutes=5)  # A shorter transaction is nothing to tell.
MANY: Final = 50_000  # Dead rows: about 17,000 tasks that were run meanwhile.
TRANSACTIONS: Final = 1_000  # Where it is not known since when: so many have begun since.
LONGEST: Final = 80  # Characters of a query.


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSnapshot:
    """The oldest snapshot, and who holds it."""

    kind: str  # ``session``, ``prepared`` (a prepared transaction) or ``slot`` (of replication).
    name: str  # The user of the session or transaction; the name of the slot.
    pid: int | None
    since: datetime | None  # When the transaction began; None: not known, or a slot.
    asked_at: datetime | None  # When its last query did.
    state: str  # Of the session, such as ``idle in transaction``; empty: not known.
    dead_rows: int  # Of the table of tasks.
    query: str  # The beginning of the last. It may contain people's data: show it to operators only.

    def as_data(self) -> dict[str, Any]:
        names = ("kind", "name", "pid", "since", "asked_at", "state", "dead_rows")
        return {name: getattr(self, name) for name in names}

    @property
    def told(self) -> str:
        """What it is and what to do, in a sentence, without the query."""
        parts = {
            "name": self.name,
            "pid": self.pid,
            "at": told_time(self.since) if self.since is not None else "",
            "count": number_format(self.dead_rows, force_grouping=True),
        }
        return self._sentence() % parts

    def _sentence(self) -> str:
        if self.kind == "slot":
            return _(
                "The replication slot %(name)s holds an old snapshot, so PostgreSQL keeps %(count)s dead rows of tasks, and "
                "polls slow down. See to its reader, or drop the slot."
            )
        if self.kind == "prepared":
            return _(
                "A transaction that %(name)s prepared at %(at)s has not ended, so PostgreSQL keeps %(count)s dead rows of "
                "tasks, and polls slow down. Commit it, or roll it back."
            )
        if self.since is None:
            return _(
                "Session %(pid)s of %(name)s holds an old snapshot, so PostgreSQL keeps %(count)s dead rows of tasks, and "
                "polls slow down. End its transaction, or let it read from a replica."
            )
        return _(
            "Session %(pid)s of %(name)s is in a transaction since %(at)s, so PostgreSQL keeps %(count)s dead rows of tasks, "
            "and polls slow down. End it, or let it read from a replica."
        )


def old_snapshot(*, using: str) -> OldSnapshot | None:
    """The oldest snapshot, if held for five minutes while many rows are dead; None on SQLite. One statement."""
    dialect = dialect_of(using)
    if dialect.has_one_writer:
        return None
    asked: dict[str, Any] = {"long": LONG, "many": MANY, "transactions": TRANSACTIONS, "longest": LONGEST}
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("snapshot_holder"), asked)
        row = cursor.fetchone()
    return _read(json.loads(row[0])) if row else None


def _read(found: dict[str, Any]) -> OldSnapshot:
    times = {name: datetime.fromisoformat(at) if (at := found[name]) else None for name in ("since", "asked_at")}
    texts = {name: " ".join((found[name] or "").split()) for name in ("name", "state", "query")}
    return OldSnapshot(**{**found, **times, **texts})


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """
    The state of a database's tasks. A count of ``MAX_COUNTED`` means at least so many.

    Args:
        site: The site that the database belongs to; empty: no named site.
        polled_at: Last sign of a poller, by the database's real clock, to a poll interval; None: never.
        is_polled: Whether that is within three poll intervals.
        oldest_overdue_at: Due time of the task that has been due for longest, if for longer than two polls. A task that is on
            hold, or waits for a place of its limit, is not overdue.
        stuck: How many claimed or active tasks nobody has taken over, although their lease ran out three polls ago.
        unknown_task_keys: Keys of open tasks that no timeline of this process declares.
        undefined: The same, the most first: ``task_key`` and ``count``.
        discarded: How many were discarded in the last 24 hours of story time, and not redriven since.
        discards: The same, the most first: ``task_key``, ``count``, and class of the last ``error``, else the reason code.
        held: How many tasks are due and on hold.
        closed_limits: Keys of limits that a task has closed, and that wait for a person.
        problems: What is wrong with how tasks are run, in sentences.
        troubles: Other things that are wrong, such as webhooks that nobody sends, in sentences.
        snapshot: Who holds a snapshot for so long that it costs something; None: nobody.
        waiting: How much waits for a person, however long.
    """

    database: str
    site: str
    polled_at: datetime | None
    is_polled: bool
    oldest_overdue_at: datetime | None
    overdue: int
    pending: int
    active: int
    stuck: int
    missing_triggers: list[str]
    unknown_task_keys: list[str]
    discarded: int
    discards: list[dict[str, Any]]
    retrying: int
    holds: int = 0
    held: int = 0
    undefined: list[dict[str, Any]] = field(default_factory=list)
    closed_limits: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    snapshot: OldSnapshot | None = None
    waiting: Waiting = field(default_factory=Waiting)

    @property
    def well(self) -> bool:
        """Whether nothing is wrong: due tasks are run, nothing was discarded, no limit waits for a person, no trouble."""
        return self.working and not (self.discarded or self.closed_limits or self.troubles)

    @property
    def working(self) -> bool:
        """Whether due tasks are run."""
        return not self.problems

    @property
    def needs_nobody(self) -> bool:
        """Whether nothing is wrong, and nothing waits for a person."""
        return self.well and not (self.waiting.total or self.overdue)

    def as_data(self) -> dict[str, Any]:
        snapshot = self.snapshot.as_data() if self.snapshot is not None else None
        return {**asdict(self), "snapshot": snapshot, "well": self.well}


def databases() -> list[str]:
    """Aliases of the databases that have tasks."""
    return [alias for alias in connections if router.allow_migrate_model(alias, ScheduledTask)]


def diagnose(*, now: datetime, using: str) -> Health:
    """Look at one database, in a fixed number of bounded statements."""
    tasks, sql = ScheduledTask.objects.using(using), dialect_of(using).sql
    asked: list[QuerySet[Any, Any] | Words] = [
        _holds(using),
        _identity(using),
        Words(sql("triggers")),
        Words(sql("task_keys_there")),
        tasks.closing().values_list("limit_key")[:MAX_COUNTED],
    ]
    open_holds, identities, there, task_keys, closing = gather(asked, using=using)
    holds = {(scope, target): count for scope, target, count in open_holds}
    counts = _counts(tasks, OnHold(frozenset(holds)), now)
    discards, undefined = _discards(tasks, now), undefined_among(task_keys, using)
    site, polled_at, is_polled = _polled(next(iter(identities), None))
    health = Health(
        database=using,
        site=site,
        polled_at=polled_at,
        is_polled=is_polled,
        overdue=counts["overdue"].count,
        oldest_overdue_at=counts["overdue"].first_at,
        pending=counts["pending"].count,
        active=counts["active"].count,
        stuck=counts["stuck"].count,
        missing_triggers=missing_among(set(there), using=using),
        unknown_task_keys=sorted(each["task_key"] for each in undefined),
        undefined=undefined,
        discarded=sum(each["count"] for each in discards),
        discards=discards,
        retrying=counts["retrying"].count,
        closed_limits=sorted({key for [key] in closing}),
        holds=sum(holds.values()),
        held=counts["due"].count - counts["due and free"].count,
    )
    waiting = Waiting.of({name: counted.count for name, counted in counts.items()})
    troubles = told_troubles(now=now, using=using, is_polled=is_polled)
    snapshot = old_snapshot(using=using)
    if snapshot is not None:
        troubles.append(snapshot.told)
    problems = list(_problems(health, now))
    return replace(health, problems=problems, troubles=troubles, snapshot=snapshot, waiting=waiting)


def find_troubles(*, now: datetime, using: str) -> list[Trouble]:
    """Ask the other apps, such as webhooks, what is wrong with their own data."""
    answers: list[tuple[Any, Any]] = diagnosing.send(sender=Health, now=now, using=using)
    return [trouble for _listener, trouble in answers if trouble is not None]


def told_troubles(*, now: datetime, using: str, is_polled: bool) -> list[str]:
    """The same with what features find, in sentences."""
    found = [trouble.text for trouble in find_troubles(now=now, using=using)]
    return [*found, *chain.from_iterable(ask(now=now, using=using, is_polled=is_polled) for ask in hooks().troubles)]


def _holds(using: str) -> QuerySet[Any, Any]:
    return Hold.objects.using(using).open().order_by().values_list("scope", "target").annotate(count=Count("pk"))


def _counts(tasks: ScheduledTaskQuerySet, holding: OnHold, now: datetime) -> defaultdict[str, Counted]:
    """Count running and late tasks. If there is no hold, nothing is asked about holds."""
    free = tasks.taken_of(registry.task_keys(), holding)
    asks: list[tuple[str, Any]] = [
        ("pending", tasks.on_their_way()),
        ("active", tasks.filter(state=State.ACTIVE)),
        ("stuck", tasks.given_up(3 * get_settings().POLL_INTERVAL)),
        ("retrying", tasks.filter(state=State.RETRYABLE, failures__gt=0)),
        *(("overdue", part) for _name, part in asks_of_overdue(free, now=now)),
        *as_counted(asks_of_waiting(tasks, now=now)),
    ]
    if holding.targets:
        asks += _late("due", tasks.with_handler(registry.task_keys()), now) + _late("due and free", free, now)
    return defaultdict(Counted, counted_apart(asks, most=MAX_COUNTED, using=tasks.db))


def _late(name: str, tasks: ScheduledTaskQuerySet, since: datetime) -> list[tuple[str, ScheduledTaskQuerySet]]:
    # In the order of the index that finds them: otherwise PostgreSQL might read the whole table for this many rows.
    return [(name, part.in_order()) for part in tasks.late(since)]


def _identity(using: str) -> QuerySet[Any, Any]:
    found = Identity.objects.using(using).annotate(machine_time=MachineTime())
    return found.values_list("site", "polled_at", "machine_time")


def _polled(identity: tuple[str, datetime | None, datetime] | None) -> tuple[str, datetime | None, bool]:
    if identity is None:
        return "", None, True  # A process that is about to write its first sign is not missed yet.
    site, polled_at, machine_time = identity
    return site, polled_at, polled_at is not None and polled_at >= machine_time - 3 * get_settings().POLL_INTERVAL


def _discards(tasks: ScheduledTaskQuerySet, now: datetime) -> list[dict[str, Any]]:
    """Tasks discarded lately and not redriven, by kind; if there are very many, only those with the latest due times."""
    since = now - RECENTLY
    last = tasks.filter(state=State.DISCARDED, scheduled_at__gte=since - EARLIER).order_by("-scheduled_at", "-pk")
    # The condition has the state twice, so that an index of discarded tasks finds the outer rows, too.
    found = tasks.filter(state=State.DISCARDED, pk__in=last.values("pk")[:MAX_COUNTED], finished_at__gte=since)
    found = found.exclude(Exists(tasks.filter(previous=OuterRef("pk"))))
    alike = [F("task_key")]
    latest = found.annotate(
        count=Window(Count("pk"), partition_by=alike),
        place=Window(RowNumber(), partition_by=alike, order_by=["-finished_at", "-pk"]),
    ).filter(place=1)
    rows = latest.order_by("-count", "task_key").values_list("task_key", "count", "reason_code", "error")
    with guided(AS_IT_IS, using=tasks.db):
        return [{"task_key": key, "count": count, "error": _kind_of(code, error)} for key, count, code, error in rows]


def _kind_of(reason_code: str, error: str) -> str:
    raised = error and reason_code not in (ReasonCode.WORKER_LOST, ReasonCode.TIMEOUT)
    return error.partition(": ")[0] if raised else reason_code


def undefined_among(task_keys: Iterable[str], using: str) -> list[dict[str, Any]]:
    """Keys of open tasks, of those that are there, which no timeline of this process declares; the most first."""
    unknown = {key for key in set(task_keys) - set(registry.task_keys()) if not registry.is_elsewhere(key)}
    some = ScheduledTask.objects.using(using).filter(task_key=KIND, state=DETAIL).order_by("scheduled_at")
    pairs = [(key, state) for key in sorted(unknown) for state in sorted(OPEN)]
    found: Counter[str] = Counter()
    for (_name, key, _state), count in counts_of([Pairs("open", some, pairs)], most=MAX_COUNTED, using=using).items():
        found[key] += count
    told = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return [{"task_key": key, "count": min(count, MAX_COUNTED)} for key, count in told]


def told_undefined(undefined: Sequence[Mapping[str, Any]]) -> str:
    """Say which open tasks have no definition any more, how many, and what can be done."""
    number = min(sum(each["count"] for each in undefined), MAX_COUNTED)
    timelines = sorted({each["task_key"].partition(".")[0] for each in undefined})
    named = [f"{each['task_key']} ({told_count(each['count'])})" for each in undefined[:MOST_NAMED]]
    text = ngettext(
        "%(count)s row has no definition any more: %(tasks)s. It rests until the code has it again, or somebody applies the "
        "plan: %(commands)s.",
        "%(count)s rows have no definition any more: %(tasks)s. They rest until the code has them again, or somebody applies "
        "the plan: %(commands)s.",
        number,
    )
    told = text % {
        "count": told_count(number),
        "tasks": ", ".join([*named, *(["…"] if undefined[MOST_NAMED:] else [])]),
        "commands": ", ".join(f"manage.py timeline_apply {name}" for name in timelines[:MOST_COMMANDS]),
    }
    return " ".join(filter(None, [told, *dict.fromkeys(map(registry.brought_back_by, timelines))]))


def _problems(health: Health, now: datetime) -> Iterator[str]:
    if health.site != get_settings().SITE:
        yield _("It is another site's database, so nothing of it runs here. See manage.py timeline_adopt.")
    elif not health.is_polled:
        yield _("Nobody polls it. Start timeline_worker; with Celery, beat and a worker for polls, or timeline_poll.")
    elif health.oldest_overdue_at is not None and health.oldest_overdue_at < now - LATE * get_settings().POLL_INTERVAL:
        yield _("Tasks wait for too long. Start more workers, or see what keeps those there are.")
    if health.stuck:
        yield _("Nobody has taken over tasks whose worker was lost. Polls do that; see that they succeed.")
    if health.missing_triggers:
        yield _("Triggers that guard the rows are missing. Run manage.py migrate --skip-checks.")
    if health.undefined:
        yield told_undefined(health.undefined)
