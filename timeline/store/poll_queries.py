"""What a poll asks every second, one row each, without the ORM; and its transactions, which have limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final, NamedTuple

from django.db import connections

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.store.floors import BEGINNING, SLACK, IndexPlace, floor_of, floors_of, note_dead
from timeline.store.kept_statements import FIRST_DUE
from timeline.store.transactions import IN_ORDER, as_select, atomic, execute_guided
from timeline.timing import EARLIEST

# Rows that others have locked are skipped. The ``lock_timeout`` is for locks on whole tables.
BOUNDS: Final = {"lock_timeout": "5s", "statement_timeout": "30s"}
AT_ONCE: Final = {"lock_timeout": "20ms", "statement_timeout": "30s"}  # For work that is left if somebody has the lock.
# If a poll stops in the middle, or cannot be reached any more, the database ends its transaction and so releases its locks.
# Otherwise workers that want to give a sign would wait for them. This is not set in a transaction of the caller's, which may
# take longer.
IDLE: Final = {"idle_in_transaction_session_timeout": "10s"}
# For signs and leases, by which a worker says that it is alive. They do not wait for a slow disk: meanwhile the worker would
# seem dead, and would keep rows locked that its handlers need. If the database crashes before they are on the disk, the worker
# says the same again with its next beat.
UNFLUSHED: Final = {"synchronous_commit": "off"}


class Waiting(NamedTuple):
    """
    What the probe before staging found: the first task that is due (None: none), any notes to wake tasks, any available task.
    """

    first_due: IndexPlace | None = None
    some_noted: bool = False
    some_available: bool = False


class _Places(NamedTuple):
    """Where the probe before staging begins."""

    waiting: IndexPlace = BEGINNING
    available: IndexPlace = BEGINNING


def probe_waiting(*, now: datetime, using: str) -> Waiting:
    """Look whether a waiting task is due, or has to be made due, and whether one is available. PostgreSQL only."""
    floor = floor_of("waiting", _Places, using=using)
    known = floor.place
    (begin, whole), begun = floor.begin(), monotonic()
    if known is not None:
        # What is available is looked for by kind, and then wholly: here it is not read once more for that.
        begin = begin._replace(available=known.available)
    asked: dict[str, Any] = {
        "at": now,
        "since": begin.waiting.since,
        "since_id": begin.waiting.id,
        "available_since": begin.available.since,
        "available_since_id": begin.available.id,
    }
    with connections[using].cursor() as cursor:
        cursor.execute(FIRST_DUE.call("*"), asked)
        due_at, due_id, some_noted, available_at, available_id, dead = cursor.fetchone()
    note_dead(dead, using=using)
    first_due = IndexPlace(due_at, due_id) if due_at is not None else None
    available = IndexPlace(available_at, available_id) if available_at is not None else None
    nothing = IndexPlace(now - SLACK)
    places = _Places(first_due or max(begin.waiting, nothing), available or max(begin.available, nothing))
    floor.found(lambda: places, begun, whole=whole, using=using)
    return Waiting(first_due, bool(some_noted), available is not None or (whole and known is not None))


def lower_available(place: IndexPlace, *, using: str) -> None:
    """Let this process look for any available task from this place on, at the latest: it has put some there."""
    for floor in floors_of("waiting", using=using):
        places: _Places | None = floor.place
        if places is not None:
            floor.place = places._replace(available=min(places.available, place))


class Probed(NamedTuple):
    """
    What a poll finds out first. ``leases_valid_at``: the real clock, if no lease had expired by then; None: one has, or not
    known (SQLite). ``is_lost``: tasks may have to be rescued, as a lease has expired or a worker gives no signs.
    """

    leases_valid_at: datetime | None
    is_lost: bool


def probe_lost(*, using: str) -> Probed:
    """Look whether an attempt may be lost."""
    dialect = dialect_of(using)
    floor = floor_of("lost", _beginning_of_leases, using=using)
    (since, whole), begun = floor.begin(), monotonic()
    asked = {"missed_after": dialect.length_of(get_settings().missed_after), "since": since}
    machine_time, given_up, missed = _probe("first_given_up", asked, using, IN_ORDER) or (None, None, False)
    if not dialect.has_time_types or machine_time is None:
        return Probed(None, given_up is not None or bool(missed))
    floor.found(lambda: given_up or machine_time - SLACK, begun, whole=whole, using=using)
    return Probed(machine_time if given_up is None else None, given_up is not None or bool(missed))


def _beginning_of_leases() -> datetime:
    return EARLIEST


class Signed(NamedTuple):
    """
    What is asked before a poll. ``site``: empty if the database has no row for it. ``is_due``: nobody has polled it lately.
    """

    site: str = ""
    is_due: bool = False
    some_on_hold: bool = False
    some_in_bulk: bool = False


def sign(interval: timedelta, *, using: str) -> Signed:
    """Read the site, whether nobody has polled for ``interval``, and whether there are open holds or bulk actions."""
    row = _probe("sign", {"interval": dialect_of(using).length_of(interval)}, using)
    return Signed(row[0], *map(bool, row[1:])) if row else Signed()


def _probe(
    verb: str, parameters: dict[str, Any], using: str, settings: dict[str, str] | None = None
) -> tuple[Any, ...] | None:
    with connections[using].cursor() as cursor:
        execute_guided(cursor, dialect_of(using).sql(verb), parameters, settings=settings or {}, using=using)
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row


@contextmanager
def polling(using: str, bounds: Mapping[str, str] = BOUNDS, *, flushes: bool = True) -> Iterator[None]:
    """
    Open a transaction whose statements have limits (``bounds``, settings of PostgreSQL); SQLite has the timeout in the host's
    settings. They end with it, so that a connection shared through PgBouncer is given back as it was. ``flushes``: whether the
    commit waits for the disk. In a transaction of the caller's, the caller decides this.
    """
    connection = connections[using]
    own = {} if connection.in_atomic_block else IDLE if flushes else {**IDLE, **UNFLUSHED}
    with atomic(using=using):
        if dialect_of(using).has_settings:
            with connection.cursor() as cursor:
                cursor.execute(as_select({**own, **bounds}))
        yield
