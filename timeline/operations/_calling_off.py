"""Call off: cancel all open tasks of an entity or of runs. On PostgreSQL, one statement finds, locks, cancels and logs them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from django.db import connections

from timeline.dialects import dialect_of
from timeline.lifecycle import Reason, Trigger
from timeline.models import ScheduledTask
from timeline.models.statements import narrowed
from timeline.operations.current import running
from timeline.store.advancing import advance
from timeline.store.announcing import announce
from timeline.store.composing import ALWAYS
from timeline.store.returning import COLUMNS, FIELDS, RawRow, rows_of
from timeline.store.telling import is_heard, tell_ended
from timeline.store.writing import Write, apply

# The columns needed to tell of a transition and to find the entity of a task; in the model's order.
BRIEFLY: Final = ", ".join(name for name in FIELDS if name in {*ALWAYS, "run_id", "limit_key", "slot"})


def call_off(
    whose: str,
    named: dict[str, Any],
    *,
    columns: str = BRIEFLY,
    before: datetime | None = None,
    reason: Reason,
    now: datetime,
    using: str,
) -> list[ScheduledTask]:
    """
    Cancel open tasks. A task that this thread is running now is left out: it records its own outcome.

    Args:
        whose: ``entity``: the tasks of the entity that ``named`` gives by ``label`` and ``entity``; its open runs are locked
            before the tasks. ``kin``: the same for an entity with several names, see ``Dialect.entities_of``. ``runs``: the
            tasks of the runs that ``named`` gives by ``runs``, a list of their ids; the caller has locked them.
        named: The parameters that ``whose`` needs. The caller has locked the entities.
        columns: The columns of the tasks to read, in the model's order; others are read when they are used.
        before: With ``runs``: cancel only tasks whose nominal time and planned due time are before this. ``named`` gives their
            ``kinds`` then, and in ``earlier`` those kinds for which the planned due time does not matter. None: cancel all.
        reason: The reason that is kept on the rows and in the log.
        now: Story time.
        using: Database alias.

    Returns:
        The tasks, in state ``cancelled``, the oldest first.
    """
    connection, dialect = connections[using], dialect_of(using)
    columns = COLUMNS if is_heard() else columns
    asked = {**named, "spared": dialect.list_of(task_id.hex for task_id in running())}
    parts = frozenset[str]()
    if before is not None:
        parts, asked["before"] = frozenset({"before"}), connection.ops.adapt_datetimefield_value(before)
    if dialect.has_set_statements:
        rows = advance(
            whose, Trigger.CANCEL, columns=columns, reason=reason, now=now, using=using, parts=parts, **asked
        )
        tasks = sorted(_as_tasks(rows, using), key=attrgetter("pk"))
        tell_ended(tasks, using=using)
        if any(task.limit_key for task in tasks):
            announce(using=using)  # Another task may wait for a place that one of these had.
        return tasks
    with connection.cursor() as cursor:
        cursor.execute(narrowed(dialect.sql(f"open_of_{whose}"), parts).replace("{columns}", columns), asked)
        tasks = _as_tasks(rows_of(cursor, connection).values(), using)
    writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=reason) for task in tasks]
    return apply(writes, now=now, using=using)


def _as_tasks(rows: Iterable[RawRow], using: str) -> list[ScheduledTask]:
    return [ScheduledTask.from_db(using, list(row), list(row.values())) for row in rows]
