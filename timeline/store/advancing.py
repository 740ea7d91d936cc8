"""Take many rows one step on, in one statement that finds, locks, moves and logs them. PostgreSQL only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from itertools import product
from typing import Any, Final
from uuid import UUID

from django.db import connections

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import FINAL, LEASED, Reason, State, Trigger
from timeline.store.change_columns import ChangeColumns, columns_of, seconds
from timeline.store.changes import passed
from timeline.store.composing import NOTHING, composed, touched
from timeline.store.guiding import IN_ORDER, execute_guided
from timeline.store.noticing import notice
from timeline.store.polling import BOUNDS
from timeline.store.returning import RawRow, cursor_for_rows, rows_of

_KEYS: Final = "id, task_key, queue"

# What a statement needs to be told: those of a poll are ended by the database if they take long.
_GUIDED: Final[dict[str, dict[str, str]]] = {
    "due": BOUNDS | IN_ORDER,
    "shares": BOUNDS | IN_ORDER,
    "group": IN_ORDER,
    "limited": IN_ORDER,
}


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
    Make one move; of rows that wait two, where these may be composed. Outside a transaction it is one of its own, committed
    with the statement.

    Args:
        selection: Which rows: name of the statement that finds and locks them, ``held_<selection>.postgresql.sql``.
        trigger: What moves them. Those from whose state it does not are left.
        now: Story time, for the log and for started and finished.
        using: Database alias.
        columns: What to read of the rows.
        lease: How long they are held, where they are; None: ``TIMELINE["LEASE"]``.
        claim_token: Of the claim, where they become pending.
        worker: Who takes them, where they become active.
        reason: Why they are cancelled, or waked.
        scheduled_at: New due time of all.
        detail: What the log has beside the reason.
        wait: For rows that somebody else has locked, where ``selection`` does not always pass them over.
        on_hold: Whether entities are on hold: then ``selection`` passes over their tasks.
        parts: Names of further lines that ``selection`` may leave out and is to have.
        asked: What else ``selection`` asks for.

    Returns:
        The rows as they are now, those that are most urgent first.
    """
    steps, connection = _steps(trigger), connections[using]
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
    touches = touched([{name: value for name, value in change.items() if value is not None}])
    touches |= parts | {"on_hold"} if on_hold else parts
    if end in FINAL:
        touches |= {"slot"}
    read = tuple(columns.split(", "))
    made = composed(dialect_of(using), "found", touches, read, selection=selection, steps=steps, wait=wait)
    parameters = {**NOTHING, **change, **asked, "at": now}
    with cursor_for_rows(connection) as cursor:
        execute_guided(cursor, made.sql, parameters, settings=_GUIDED.get(selection, {}), using=using)
        rows = rows_of(cursor, connection, made.columns)
    notice(rows)
    return list(rows.values())


@cache
def _steps(trigger: Trigger) -> tuple[tuple[State, ...], ...]:
    """The states passed by this move, from each that has it: by itself, or after being due."""
    steps = []
    for state, triggers in product(State, ((trigger,), (Trigger.DUE, trigger))):
        with suppress(TransitionNotAllowed):
            steps.append(passed(state, triggers))
    return tuple(steps)
