"""Write changes of tasks: any number of rows in one guarded UPDATE, with their log entries in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from timeline.dialects import dialect_of
from timeline.lifecycle import WAITING
from timeline.models import ScheduledTask
from timeline.store.announcing import announce, announce_times
from timeline.store.change_columns import MAX_ACTOR, MAX_REASON, as_changes, stored_by
from timeline.store.changes import Write
from timeline.store.composing import NOTHING, Composed, composed, touched
from timeline.store.kept_statements import COMPLETES, completing
from timeline.store.noticing import notice
from timeline.store.returning import RawRow, cursor_for_rows, rows_of
from timeline.store.telling import tell_written

__all__ = ["MAX_ACTOR", "MAX_REASON", "Write", "apply", "send_writes"]


def apply(writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True) -> list[ScheduledTask]:
    """
    Write the changes and their log entries. Announce tasks that are due now or soon; send the signals of tasks that ended.

    Args:
        writes: Any number of changes, one for each task.
        now: Story time, for the log and for started and finished.
        using: Database alias.
        wait: Whether to wait for rows that somebody else has locked; False: leave them out.

    Returns:
        Those of the given instances whose rows still had the state and attempt that was read; they are updated, in the order
        given. If one is missing, somebody else has changed it, or it is locked and ``wait`` is False; nothing was written for
        it.

    Raises:
        TransitionNotAllowed: if the lifecycle does not have this move; nothing is written then.
    """
    return send_writes(writes, now=now, using=using, wait=wait)()


def send_writes(
    writes: Sequence[Write], *, now: datetime, using: str, wait: bool = True
) -> Callable[[], list[ScheduledTask]]:
    """
    Write the changes, or send them without waiting for an answer (``pipelining``). Arguments and errors: as for ``apply``.

    Returns:
        A function that waits for the answer, does the rest of ``apply``, and returns what ``apply`` returns.
    """
    if not writes:
        return list
    held = {write.task.id for write in writes if write.task.slot}
    answer = _executed(*as_statement(writes, now=now, using=using, wait=wait), using=using)

    def done() -> list[ScheduledTask]:
        changed = answer()
        notice(changed)
        made = [write for write in writes if write.task.id in changed]
        tasks = [write.task for write in made]
        for task in tasks:
            task.__dict__.update(changed[task.id])
        tell_written(made, using=using)
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
    """
    Make changes and their log entries, or send them without waiting (``pipelining``); in one statement, on SQLite in two.

    Args:
        made: The statement, or two.
        parameters: Parameters of the statements.
        using: Database alias.

    Returns:
        A function that gives, by id, the new columns of the rows that were changed.
    """
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
