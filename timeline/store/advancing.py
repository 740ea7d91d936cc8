"""Move many rows one step on, by one statement that finds, locks, moves and logs them. PostgreSQL only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connections

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.lifecycle import FINAL, LEASED, Reason, Trigger
from timeline.store.change_columns import ChangeColumns, columns_of, seconds
from timeline.store.composing import NOTHING, composed, steps_by, touched
from timeline.store.guiding import IN_ORDER, execute_guided
from timeline.store.kept_statements import KEYS, moves_call
from timeline.store.noticing import notice
from timeline.store.polling import BOUNDS
from timeline.store.returning import RawRow, cursor_for_rows, rows_of

_KEYS: Final = ", ".join(KEYS)

# The database ends a statement of a poll that takes too long.
_BOUNDED: Final[dict[str, dict[str, str]]] = {"due": BOUNDS, "shares": BOUNDS}
# Settings for statements that are not kept; a kept one has its own.
_GUIDED: Final[dict[str, dict[str, str]]] = dict.fromkeys(("due", "shares", "group", "limited"), IN_ORDER)


def advance(
    selection: str,
    trigger: Trigger,
    *,
    now: datetime,
    using: str,
    columns: str = _KEYS,
    lease: timedelta | None = None,
    claim_token: UUID | None = None,
    worker: str | None = None,
    reason: Reason | None = None,
    scheduled_at: datetime | None = None,
    detail: Mapping[str, Any] | None = None,
    wait: bool = False,
    on_hold: bool = False,
    parts: frozenset[str] = frozenset(),
    **asked: object,
) -> list[RawRow]:
    """
    Move rows by one trigger; rows that are waiting for their due time by two, if the lifecycle allows both in turn. Outside a
    transaction, the statement is a transaction of its own, and is committed with it.

    Args:
        selection: Name of the statement that finds and locks the rows, ``held_<selection>.postgresql.sql``.
        trigger: What moves them. Rows in a state that has no such move are left alone.
        now: Story time, for the log and for started and finished.
        using: Database alias.
        columns: The columns to return.
        lease: How long the rows are leased, if the new state has a lease; None: ``TIMELINE["LEASE"]``.
        claim_token: Token of the claim, if the rows become pending.
        worker: Name of the worker that takes the rows, if they become active.
        reason: Why they are cancelled, or waked.
        scheduled_at: New due time of all rows.
        detail: What the log entry has besides the reason.
        wait: Whether to wait for rows that somebody else has locked, unless ``selection`` always skips them.
        on_hold: Whether any entities are on hold. If so, ``selection`` leaves out their tasks.
        parts: Names of optional lines of ``selection`` that are needed.
        asked: Further parameters of ``selection``.

    Returns:
        The rows as they are now, the most urgent first.
    """
    steps, connection = steps_by(trigger), connections[using]
    end = steps[0][-1]
    change: ChangeColumns = {"to_state": end.value, "claim_token": claim_token, "worker": worker}
    if end in LEASED:
        change["lease"] = seconds(get_settings().LEASE if lease is None else lease)
    if reason is not None:
        change |= columns_of(reason)
    if scheduled_at is not None:
        change["scheduled_at"] = scheduled_at
    if detail:
        change["detail"] = json.dumps(detail, ensure_ascii=False)
    read = tuple(columns.split(", "))
    sql, settings = "", _BOUNDED.get(selection, {})
    given = {name: value for name, value in change.items() if value is not None}
    if not on_hold and not parts:
        sql = moves_call(selection, trigger, columns, frozenset(given), wait=wait)
    if not sql:
        touches = touched([given])
        touches |= parts | {"on_hold"} if on_hold else parts
        if end in FINAL:
            touches |= {"slot"}
        made = composed(dialect_of(using), "found", touches, read, selection=selection, steps=steps, wait=wait)
        sql, settings = made.sql, settings | _GUIDED.get(selection, {})
    parameters = {**NOTHING, **change, **asked, "at": now}
    with cursor_for_rows(connection) as cursor:
        execute_guided(cursor, sql, parameters, settings=settings, using=using)
        rows = rows_of(cursor, connection, read)
    notice(rows)
    return list(rows.values())
