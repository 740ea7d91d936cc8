"""Take many rows one step on, in one statement that finds, locks, moves and logs them. PostgreSQL only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final
from uuid import UUID

from django.db import connections

from timeline.conf import get_settings
from timeline.lifecycle import FINAL, Reason, State
from timeline.models.statements import narrowed, statement
from timeline.store.changes import columns_of
from timeline.store.guiding import IN_ORDER, execute_guided
from timeline.store.isolating import atomic
from timeline.store.noticing import notice
from timeline.store.polling import BOUNDS
from timeline.store.returning import Row, cursor_for_rows, rows_of

_KEYS: Final = "id, task_key, queue"

# What a statement needs to be told: those of a poll are ended by the database if they take long.
_GUIDED: Final[dict[str, dict[str, str]]] = {
    "due": BOUNDS | IN_ORDER,
    "shares": BOUNDS | IN_ORDER,
    "group": IN_ORDER,
}


def works_in_sets(using: str) -> bool:
    """Whether this database can. Where it cannot (SQLite, with its one writer), rows are read, and then written."""
    return connections[using].vendor == "postgresql"


def advance(
    held: str,
    to: State,
    *,
    now: datetime,
    using: str,
    columns: str = _KEYS,
    token: UUID | None = None,
    worker: str | None = None,
    reason: Reason | None = None,
    wait: bool = False,
    **asked: object,
) -> list[Row]:
    """
    Make one step. Outside a transaction it is one of its own, committed with the statement.

    Args:
        held: Which rows: name of the statement that finds and locks them, ``held_<held>.postgresql.sql``.
        to: Where they go: ``available``, ``pending``, ``active`` or ``cancelled``.
        now: Story time, for the log and for started and finished.
        using: Database alias.
        columns: What to read of the rows.
        token: Of the claim, where they become pending.
        worker: Who takes them, where they become active.
        reason: Why they are cancelled.
        wait: For rows that somebody else has locked, where ``held`` does not always pass them over.
        asked: What else ``held`` asks for.

    Returns:
        The rows as they are now, those that are most urgent first.
    """
    parameters: dict[str, Any] = {
        "to_state": to.value,
        "at": now,
        "lease": get_settings().resend_after if to == State.PENDING else get_settings().LEASE,
        "token": token,
        "worker": worker,
        **(columns_of(reason) if reason is not None else {}),
        **asked,
    }
    connection = connections[using]
    sql = step(held, columns, wait=wait, ends=to in FINAL, claims=to == State.PENDING)
    with cursor_for_rows(connection) as cursor:
        execute_guided(cursor, sql, parameters, settings=_GUIDED.get(held, {}), using=using)
        rows = rows_of(cursor, connection, tuple(columns.split(", ")))
    notice(rows)
    return list(rows.values())


@contextmanager
def committed(using: str) -> Iterator[None]:
    """
    What is written within is committed when the block ends. Where one statement writes it, there is no BEGIN and no COMMIT.

    Raises:
        RuntimeError: within a transaction.
    """
    if works_in_sets(using) and not connections[using].in_atomic_block:
        yield
    else:
        with atomic(using=using, durable=True):
            yield


@cache
def step(held: str, columns: str = _KEYS, *, wait: bool = False, ends: bool = False, claims: bool = False) -> str:
    """The statement that makes a step."""
    asked = {name for name, is_so in (("ends", ends), ("claims", claims)) if is_so}
    sql = narrowed(statement("advance", "postgresql"), asked)
    sql = sql.replace("{held}", statement(f"held_{held}", "postgresql").rstrip())
    return sql.replace("{columns}", columns).replace("{skip}", "" if wait else "SKIP LOCKED")
