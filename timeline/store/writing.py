"""The one way a task changes: any number of rows in one guarded UPDATE, their log entries in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from timeline.lifecycle import WAITING
from timeline.models import ScheduledTask
from timeline.models.statements import statement
from timeline.store.announcing import announce_times
from timeline.store.changes import MAX_ACTOR, MAX_REASON, Write
from timeline.store.composing import Statement, as_statement
from timeline.store.noticing import notice
from timeline.store.returning import Row, cursor_for_rows, rows_of
from timeline.store.telling import tell_written

__all__ = ["MAX_ACTOR", "MAX_REASON", "Write", "apply"]


def apply(writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True) -> list[ScheduledTask]:
    """
    Write the changes and their log entries. What waits afterwards and is due now or soon is announced; how tasks ended is told.

    Args:
        writes: Any number, one a task.
        now: Story time, for the log and for started and finished.
        using: Database alias.
        wait: For rows that somebody else has locked; False: pass them over.

    Returns:
        The given task objects whose guard held, brought up to date, in the order given. One that is missing was changed
        by somebody else since it was read, or not waited for; nothing was written for it.

    Raises:
        TransitionNotAllowed: if the lifecycle has no such move; nothing is written then.
    """
    if not writes:
        return []
    changed = _execute(as_statement(writes, now=now, using=using, wait=wait), connections[using])
    notice(changed)
    made = [write for write in writes if write.task.id in changed]
    done = [write.task for write in made]
    for task in done:
        task.__dict__.update(changed[task.id])
    tell_written(made, using=using)
    announce_times((task.scheduled_at for task in done if task.state in WAITING), now=now, using=using)
    return done


def _execute(made: Statement, connection: BaseDatabaseWrapper) -> dict[UUID, Row]:
    """Make the changes; give what became of the rows. PostgreSQL logs in the same statement, SQLite in a second one."""
    sql, parameters, columns = made
    if connection.vendor == "postgresql":
        with cursor_for_rows(connection) as cursor:
            cursor.execute(sql, parameters)
            return rows_of(cursor, connection, columns)
    with transaction.atomic(using=connection.alias, savepoint=False), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        changed = rows_of(cursor, connection)
        written = [change for change in json.loads(parameters["changes"]) if UUID(change["id"]) in changed]
        cursor.execute(statement("log", connection.vendor), {"changes": json.dumps(written), "at": parameters["at"]})
    return changed
