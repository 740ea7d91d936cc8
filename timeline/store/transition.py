"""Write changes of tasks: any number of rows in one guarded UPDATE, with their log entries in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connections, transaction

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.lifecycle import FINAL, LEASED, WAITING, Reason, Trigger
from timeline.models import ScheduledTask
from timeline.store.changes import (
    LIMITED,
    MAX_ACTOR,
    MAX_REASON,
    NOTHING,
    ChangeColumns,
    Composed,
    Write,
    as_changes,
    columns_of,
    composed,
    paths_by,
    seconds,
    stored_by,
    touched,
)
from timeline.store.kept_statements import COMPLETES, KEYS, completing, moves_call
from timeline.store.poll_queries import BOUNDS
from timeline.store.returned_rows import RawRow, cursor_for_rows, rows_of
from timeline.store.signal_dispatch import announce, announce_times, tell_written
from timeline.store.transactions import IN_ORDER, execute_guided

_noticed: ContextVar[set[UUID] | None] = ContextVar("timeline_noticed", default=None)

__all__ = ["MAX_ACTOR", "MAX_REASON", "Write", "apply", "send_writes"]
_KEYS: Final = ", ".join(KEYS)
# The database ends a statement of a poll that takes too long.
_BOUNDED: Final[dict[str, dict[str, str]]] = {"due": BOUNDS, "shares": BOUNDS}
# Settings for statements that are not kept; a kept one has its own.
_GUIDED: Final[dict[str, dict[str, str]]] = dict.fromkeys(("due", "shares", "group", LIMITED), IN_ORDER)


@contextmanager
def noticing() -> Iterator[set[UUID]]:
    """Collect the ids of the tasks that are changed within the block, also in copies of this context."""
    noticed: set[UUID] = set()
    token = _noticed.set(noticed)
    try:
        yield noticed
    finally:
        _noticed.reset(token)


def notice(task_ids: Iterable[UUID]) -> None:
    """Report that these tasks were changed. It costs nothing if nobody collects the ids."""
    if (noticed := _noticed.get()) is not None:
        noticed.update(task_ids)


def apply(writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True) -> list[ScheduledTask]:
    """
    Write changes and their log entries, one for each task. Announce what is due soon; send the signals of tasks that ended.

    Returns the given tasks whose rows still had the state and attempt that was read, updated and in order. A missing one was
    changed meanwhile, or is locked and ``wait`` is False; nothing was written for it. On ``TransitionNotAllowed``, nothing is
    written at all.
    """
    return send_writes(writes, now=now, using=using, wait=wait)()


def send_writes(
    writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True
) -> Callable[[], list[ScheduledTask]]:
    """As ``apply``, but may send changes without waiting (``pipelining``). Call the result to get what ``apply`` returns."""
    if not writes:
        return list
    held = {write.task.id for write in writes if write.task.slot}
    answer = _executed(*as_statement(writes, now=now, using=using, wait=wait), using=using)

    def done() -> list[ScheduledTask]:
        changed = answer()
        notice(changed)
        made, tasks = [], []
        for write in writes:
            if (row := changed.get(write.task.id)) is not None:
                write.task.__dict__.update(row)
                made.append(write)
                tasks.append(write.task)
        tell_written(made, now=now, using=using)
        if held and any(task.id in held and not task.slot for task in tasks):
            announce(using=using)  # Another task may wait for this place.
        if ahead := [task.scheduled_at for task in tasks if task.state in WAITING]:
            announce_times(ahead, now=now, using=using)
        return tasks

    return done


def as_statement(
    writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True
) -> tuple[Composed, dict[str, Any]]:
    """The one statement that makes the changes, at least one, and its parameters. See ``apply``."""
    changes, dialect = as_changes(writes, using=using), dialect_of(using)
    touches, at = touched(changes), stored_by(using)("finished_at", now)
    parameters = {"at": at, "changes": json.dumps(changes, ensure_ascii=False)}
    if not dialect.has_set_statements:
        return composed(dialect, "each", touches), parameters
    parameters["ids"] = [write.task.id for write in writes]
    if not wait and touches <= COMPLETES:
        return completing(dialect), parameters
    if len(changes) > 1:
        return composed(dialect, "many", touches, selection="these", wait=wait), parameters
    # The UPDATE of a single row locks it; a selection is needed only to leave it out if it is locked.
    made = composed(dialect, "one", touches, selection="" if wait else "these", wait=wait)
    return made, NOTHING | changes[0] | parameters


def _executed(made: Composed, parameters: dict[str, Any], *, using: str) -> Callable[[], dict[UUID, RawRow]]:
    """Make changes and log entries (SQLite: two statements), or send them. Call the result: id → new columns."""
    connection = connections[using]
    if not made.log:
        opened = ExitStack()
        cursor = opened.enter_context(cursor_for_rows(connection))
        cursor.execute(made.sql, parameters)

        def answer() -> dict[UUID, RawRow]:
            with opened:
                return rows_of(cursor, connection, made.columns)

        return answer
    with transaction.atomic(using=using, savepoint=False), connection.cursor() as cursor:
        cursor.execute(made.sql, parameters)
        changed = rows_of(cursor, connection, made.columns)
        written = [change for change in json.loads(parameters["changes"]) if UUID(change["id"]) in changed]
        cursor.execute(made.log, {"changes": json.dumps(written), "at": parameters["at"]})
    return lambda: changed


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
    parts: frozenset[str] = frozenset(),
    **asked: object,
) -> list[RawRow]:
    """
    Move rows by one trigger; rows that wait for their due time by two, if the lifecycle allows both. Gives the rows as they are
    now, the most urgent first. Outside a transaction, the statement is committed by itself.

    Args:
        selection: Name of the statement that finds and locks the rows, ``held_<selection>.postgresql.sql``.
        trigger: What moves them. Rows in a state that has no such move are left alone.
        lease: How long the rows are leased, if the new state has a lease; None: ``TIMELINE["LEASE"]``.
        wait: Whether to wait for locked rows, unless ``selection`` always skips them.
        parts: Names of optional lines of ``selection`` that are needed, such as one that leaves out tasks of some entities.
        asked: Further parameters of ``selection``.
    """
    paths, connection = paths_by(trigger), connections[using]
    end = paths[0][-1]
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
    if not parts:
        sql = moves_call(selection, trigger, columns, frozenset(given), wait=wait)
    if not sql:
        touches = touched([given]) | parts
        if end in FINAL:
            touches |= {"slot"}
        made = composed(dialect_of(using), "found", touches, read, selection=selection, paths=paths, wait=wait)
        sql, settings = made.sql, settings | _GUIDED.get(selection, {})
    parameters = {**NOTHING, **change, **asked, "at": now}
    with cursor_for_rows(connection) as cursor:
        execute_guided(cursor, sql, parameters, settings=settings, using=using)
        rows = rows_of(cursor, connection, read)
    notice(rows)
    return list(rows.values())
