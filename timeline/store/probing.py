"""Probes: what a poll asks every second, whether there is work or not. Each reads one row, without the ORM."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connections

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.store.guiding import IN_ORDER, execute_guided
from timeline.store.kept_statements import FIRST_DUE


class Waiting(NamedTuple):
    """
    The result of the probe before staging.

    Args:
        first_due: The earliest due time of a waiting task that is due; None: nothing is due.
        some_noted: Whether there are notes that tasks have to be waked.
        some_available: Whether any task is available already.
    """

    first_due: datetime | None = None
    some_noted: bool = False
    some_available: bool = False


def probe_waiting(*, now: datetime, using: str) -> Waiting:
    """Look whether a waiting task is due, or has to be made due, and whether one is available. PostgreSQL only."""
    with connections[using].cursor() as cursor:
        cursor.execute(FIRST_DUE.call("*"), {"at": now})
        row: tuple[Any, ...] | None = cursor.fetchone()
    return Waiting(row[0], *map(bool, row[1:])) if row else Waiting()


class Probed(NamedTuple):
    """
    What a poll finds out before it does anything.

    Args:
        leases_valid_at: The database's real clock, if no lease had expired by then; None: one has, or it is not known (SQLite).
        is_lost: Whether there may be tasks to rescue: a lease has expired, or a worker gives no signs.
    """

    leases_valid_at: datetime | None
    is_lost: bool


def probe_lost(*, using: str) -> Probed:
    """Look whether an attempt may be lost."""
    dialect = dialect_of(using)
    asked = {"missed_after": dialect.length_of(get_settings().missed_after)}
    machine_time, given_up, missed = _probe("first_given_up", asked, using, IN_ORDER) or (None, None, False)
    kept = machine_time if dialect.has_time_types and given_up is None else None
    return Probed(kept, given_up is not None or bool(missed))


class Signed(NamedTuple):
    """
    What is asked before a poll.

    Args:
        site: Name of the site to which the database belongs; empty if it has no row for that.
        is_due: Whether nobody has polled it for the given time.
        some_on_hold: Whether there are open holds.
        some_in_bulk: Whether there are bulk actions that have not ended.
    """

    site: str = ""
    is_due: bool = False
    some_on_hold: bool = False
    some_in_bulk: bool = False


def sign(interval: timedelta, *, using: str) -> Signed:
    """
    Read the site of the database, whether nobody has polled it for that long, and whether there are holds or bulk actions.
    """
    row = _probe("sign", {"interval": dialect_of(using).length_of(interval)}, using)
    return Signed(row[0], *map(bool, row[1:])) if row else Signed()


def _probe(
    verb: str, parameters: dict[str, Any], using: str, settings: dict[str, str] | None = None
) -> tuple[Any, ...] | None:
    with connections[using].cursor() as cursor:
        execute_guided(cursor, dialect_of(using).sql(verb), parameters, settings=settings or {}, using=using)
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row
