"""Record steps. Each write is one statement, which writes only if the attempt still belongs to its worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import DatabaseError, connections
from django.db.models import TextField
from django.db.models.functions import Cast

from timeline.dialects import dialect_of, is_by_psycopg3, narrowed, sqlstate_of
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind, StepRecord
from timeline.models.task_records import recorded_by, steps_among
from timeline.store.multi_query import takes_texts

# Kind of cursor and alias → the driver's connection of this thread, its class of cursors, and our cursor wrapped by Django.
_kept = threading.local()
_NONE: Final = (None, None, None)

# How long a step in a transaction waits for the lock of the row of its task. PostgreSQL looks for deadlocks after a second;
# this is much less, so that others who wait for locks of the step are not chosen to end a deadlock.
PATIENCE: Final = timedelta(milliseconds=50)
_PATIENCE: Final = f"{PATIENCE.total_seconds()} seconds"
NOT_RECORDED: Final = "TL001"  # Raised by ``function_record_last_step``, so that the COMMIT after it commits nothing.


def bound_cursor(connection: Any) -> Any:
    """
    A cursor for one statement, whose values the server binds. The caller fetches all rows, and does not close it.

    Django's own writes the values into the text; this takes half the time. It prepares no statements, unless ``OPTIONS`` has a
    ``prepare_threshold``: some poolers allow none. It is Django's if the host has a class of cursors, if Django logs queries,
    and with other drivers.
    """
    return _cursor(connection, "bound", lambda driver: connection.Database.Cursor(driver))  # noqa: PLW0108 (only psycopg 3 has it)


def text_cursor(connection: Any) -> Any:
    """Django's own cursor, kept in the same way, for statements that are sent as one text."""
    return _cursor(connection, "text", lambda driver: driver.cursor())


def _cursor(connection: Any, how: str, make: Callable[[Any], Any]) -> Any:
    connection.close_if_health_check_failed()
    if connection.connection is None:
        connection.ensure_connection()
    driver = connection.connection
    kept: dict[str, tuple[Any, Any, Any]] = vars(_kept)
    known_as = f"{how} {connection.alias}"
    its_driver, its_factory, cursor = kept.get(known_as, _NONE)
    if its_driver is driver and its_factory is driver.cursor_factory and not connection.queries_logged:
        return cursor
    own = not is_by_psycopg3(connection) or not driver.cursor_factory.__module__.startswith("django.")
    if own or connection.queries_logged:  # The log of queries would have no text of such a statement.
        return connection.cursor()
    cursor = connection._prepare_cursor(make(driver))
    kept[known_as] = driver, driver.cursor_factory, cursor
    return cursor


class NewStep(NamedTuple):
    """
    The values of a step to record. It is a tuple, which is made fast, since two are made for each step.

    Args:
        origin: Idempotency key of the task.
        name: Name of the step, with its key.
        digest, code, place, done, total: See ``StepRecord``; the place is JSON as text.
        at: Story time.
        result: JSON as text; None: no result.
        done_by: For a loop, the attempt that did its last batch. None: this attempt.
    """

    origin: UUID
    name: str
    task: UUID
    attempt: int
    digest: str
    code: str
    at: datetime
    kind: StepKind = StepKind.DONE
    seconds: float = 0.0
    result: str | None = None
    place: str | None = None
    done: int | None = None
    total: int | None = None
    done_by: int | None = None

    def ended(self, *, at: datetime, seconds: float, result: str | None) -> NewStep:
        """The same step, when it is done."""
        known = (self.origin, self.name, self.task, self.attempt, self.digest, self.code)
        return NewStep(*known, at, StepKind.DONE, seconds, result)  # ``_replace`` takes three times as long.


class Stored(NamedTuple):
    """A step that was recorded, with its result as the database has it: JSON as text; None: no result."""

    result: str | None


def record_step(step: NewStep, *, using: str, last: bool = False) -> Stored | None:
    """
    Record a step, in the caller's transaction or in one of the statement's own.

    A transaction may have locked rows that the holder of the task's row wants next, so it waits only a short time for that
    row. With ``last``, the caller's transaction ends with it, and is committed in the same trip to the database if possible.
    None: nothing is written, nor committed: there is a record already, or the attempt is not its worker's any more.
    """
    connection: Any = connections[using]
    if not last or not _can_commit(connection):
        return _written("record_step", step, connection)
    try:
        return _written("record_step", step, connection, "last")
    except DatabaseError as error:
        if sqlstate_of(error) != NOT_RECORDED:
            raise
        connection.needs_rollback = True  # As in PostgreSQL: no other statement is possible in this transaction.
        return None


def _can_commit(connection: Any) -> bool:
    """
    Whether a statement and the COMMIT of the open transaction can be sent as one text. It must end with the present
    ``atomic()`` and not be broken, and the driver must accept such a text.
    """
    if not connection.commit_on_exit or connection.savepoint_ids or connection.needs_rollback:
        return False
    if not connection.in_atomic_block or len(connection.atomic_blocks) > 1:
        return False
    return takes_texts(connection)


def record_steps(steps: Sequence[NewStep], *, using: str) -> dict[tuple[UUID, str], Stored]:
    """
    Record steps that are done, of any number of tasks, in one statement. It waits for no lock.

    Gives, by origin and name, what was recorded. Left out are steps of locked tasks, steps that were recorded before, and steps
    of attempts that are not their workers' any more.
    """
    values: dict[str, Any] = {
        "origins": [str(step.origin) for step in steps],
        "names": [step.name for step in steps],
        "tasks": [str(step.task) for step in steps],
        "attempts": [step.attempt for step in steps],
        "ats": [step.at for step in steps],
        "seconds": [step.seconds for step in steps],
        "digests": [step.digest for step in steps],
        "codes": [step.code for step in steps],
        "results": [step.result for step in steps],
    }
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("record_steps"), values)
        return {(UUID(origin), name): Stored(result) for origin, name, result in cursor.fetchall()}


def finish_step(step: NewStep, *, using: str) -> Stored | None:
    """Record the end of a step that this attempt has recorded as begun. None: the attempt is not its worker's any more."""
    return _written("finish_step", step, connections[using])


def record_place(step: NewStep, *, using: str) -> Stored | None:
    """
    Record how far a loop has come, or its end; its one record is overwritten. Writing twice does no harm.

    In the caller's transaction, it waits only a short time for the task's row; see ``record_step``. None: nothing was written,
    since the record is not a loop's, or the attempt is not its worker's any more.
    """
    return _written("record_place", step, connections[using])


def is_its_workers(step: NewStep, *, using: str) -> bool:
    """Whether the attempt still belongs to its worker."""
    tasks = ScheduledTask.objects.using(using).filter(pk=step.task, attempt=step.attempt, state=State.ACTIVE)
    return tasks.exists()


def withdraw_step(step: NewStep, *, using: str) -> None:
    """Delete the record that this attempt began a step, since it is known that nothing happened."""
    begun = StepRecord.objects.using(using).filter(origin=step.origin, name=step.name, kind=StepKind.BEGUN)
    begun.filter(recorded_by([step.task]), attempt=step.attempt).delete()


def steps_of(origin: UUID, *, using: str) -> dict[str, StepRecord]:
    """The records of all steps of a task by their names, in the order in which they were recorded."""
    return {record.name: record for record in steps_among([origin], using=using)}


@cache
def _statement(using: str, verb: str, *parts: str) -> str:
    return narrowed(dialect_of(using).sql(verb), frozenset(parts))


def _written(verb: str, step: NewStep, connection: Any, *parts: str) -> Stored | None:
    within = ("within",) if connection.in_atomic_block else ()
    sql = _statement(connection.alias, verb, *within, *parts)
    native = connection.features.has_native_uuid_field
    values: dict[str, Any] = {
        "origin": step.origin if native else step.origin.hex,
        "name": step.name,
        "task": step.task if native else step.task.hex,
        "attempt": step.attempt,
        "digest": step.digest,
        "code": step.code,
        "kind": step.kind.value,
        "at": connection.ops.adapt_datetimefield_value(step.at),
        "seconds": step.seconds,
        "result": step.result,
        "place": step.place,
        "done": step.done,
        "total": step.total,
        "done_by": step.done_by,
        "patience": _PATIENCE if within else None,
    }
    cursor = text_cursor(connection) if "last" in parts else bound_cursor(connection)
    cursor.execute(sql, values)
    if "last" in parts and cursor.description is None:  # A wrapper of the host's has gone on to the result of COMMIT.
        return _committed(step, connection.alias)
    # Read all rows: SQLite commits only then. ``fetchall`` is not used, since Django wraps it anew at each call.
    rows = list(cursor)
    return Stored(rows[0][0]) if rows else None


def _committed(step: NewStep, using: str) -> Stored:
    records = StepRecord.objects.using(using).filter(origin=step.origin, name=step.name)
    return Stored(records.values_list(Cast("result", TextField()), flat=True).get())
