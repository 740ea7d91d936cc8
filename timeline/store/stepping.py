"""Record steps: each write is one statement, and holds only while the attempt is its worker's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import DatabaseError, connections
from django.db.models import TextField
from django.db.models.functions import Cast

from timeline.dialects import dialect_of
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind, StepRecord
from timeline.models.sqlstates import sqlstate_of
from timeline.models.statements import narrowed
from timeline.models.step import recorded_by, steps_among
from timeline.store.kept_cursors import bound_cursor, text_cursor
from timeline.store.pipelining import takes_texts

# What a step in a transaction waits for the lock of its task's row: far less than the second after which PostgreSQL looks for
# deadlocks, so that whoever wants what the step has locked does not have to give way.
PATIENCE: Final = timedelta(milliseconds=50)
_PATIENCE: Final = f"{PATIENCE.total_seconds()} seconds"
NOT_RECORDED: Final = "TL001"  # What ``function_record_last_step`` raises, so that the COMMIT behind it is none.


class NewStep(NamedTuple):
    """
    What is to be recorded of a step. A tuple, since two are made for each step.

    Args:
        origin: Idempotency key of the task.
        name: Of the step, with its key.
        task, attempt: Whose worker records it.
        digest, code: See ``StepRecord``.
        at: Story time.
        kind: Whether it is done, or begins.
        seconds: How long it took.
        result: JSON as text; None: nothing.
        place, done, total: Of a loop, see ``StepRecord``; the place is JSON as text.
        done_by: The attempt that the record names: of a loop, the one that did its last batch. None: this one.
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
        """The same step, done."""
        known = (self.origin, self.name, self.task, self.attempt, self.digest, self.code)
        return NewStep(*known, at, StepKind.DONE, seconds, result)  # ``_replace`` takes three times as long.


class Stored(NamedTuple):
    """
    That a step is recorded.

    Args:
        result: What the database has made of it: JSON as text; None: nothing.
    """

    result: str | None


def record_step(step: NewStep, *, using: str, last: bool = False) -> Stored | None:
    """
    Record it, in the caller's transaction or by itself.

    In a transaction, which may have locked what the holder of the task's row wants next, that row is not waited for for long.

    Args:
        step: What is to be recorded.
        using: Database alias.
        last: Whether the caller's transaction ends with it. It is committed in the same trip to the database then, where that
            can be done: the caller's own commit finds nothing left to do.

    Returns:
        None: nothing was written, and nothing committed. There is a record of it already, or the attempt is not its worker's
        any more.
    """
    connection: Any = connections[using]
    if not last or not _can_commit(connection):
        return _written("record_step", step, connection)
    try:
        return _written("record_step", step, connection, "last")
    except DatabaseError as error:
        if sqlstate_of(error) != NOT_RECORDED:
            raise
        connection.needs_rollback = True  # As PostgreSQL has it: nothing more can be asked in this transaction.
        return None


def _can_commit(connection: Any) -> bool:
    """
    Whether a statement and the COMMIT of the open transaction can be sent as one text.

    The transaction must be the one that ``atomic()`` ends, and not broken. And the driver must take such a text.
    """
    if not connection.commit_on_exit or connection.savepoint_ids or connection.needs_rollback:
        return False
    if not connection.in_atomic_block or len(connection.atomic_blocks) > 1:
        return False
    return takes_texts(connection)


def record_steps(steps: Sequence[NewStep], *, using: str) -> dict[tuple[UUID, str], Stored]:
    """
    Record steps that are done, of any number of tasks, in one statement. Waits for nobody.

    Returns:
        Origin and name → what is recorded. Not among them: those of tasks that somebody has locked, those recorded already, and
        those of attempts that are not their worker's any more.
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
    """
    Record how a step ended that this attempt has recorded as begun.

    Returns:
        None: nothing was written, since the attempt is not its worker's any more.
    """
    return _written("finish_step", step, connections[using])


def record_place(step: NewStep, *, using: str) -> Stored | None:
    """
    Record how far a loop has come, or its end, in the caller's transaction or by itself. Its one record is written over.

    In a transaction, the task's row is not waited for for long; see ``record_step``. Written twice, it is the same.

    Returns:
        None: nothing was written. There is a record of its name that is none of a loop, or the attempt is not its worker's any
        more.
    """
    return _written("record_place", step, connections[using])


def is_its_workers(step: NewStep, *, using: str) -> bool:
    """Whether the attempt is its worker's still."""
    tasks = ScheduledTask.objects.using(using).filter(pk=step.task, attempt=step.attempt, state=State.ACTIVE)
    return tasks.exists()


def withdraw_step(step: NewStep, *, using: str) -> None:
    """Forget that this attempt began a step: it is known that nothing happened."""
    begun = StepRecord.objects.using(using).filter(origin=step.origin, name=step.name, kind=StepKind.BEGUN)
    begun.filter(recorded_by([step.task]), attempt=step.attempt).delete()


def steps_of(origin: UUID, *, using: str) -> dict[str, StepRecord]:
    """Name → record of all steps of a task, by its idempotency key, in the order they were recorded."""
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
    if "last" in parts and cursor.description is None:  # A wrapper of the host's has gone on to the COMMIT.
        return _committed(step, connection.alias)
    # All of them: before that SQLite does not commit. Not by ``fetchall``, which Django wraps anew at each call.
    rows = list(cursor)
    return Stored(rows[0][0]) if rows else None


def _committed(step: NewStep, using: str) -> Stored:
    records = StepRecord.objects.using(using).filter(origin=step.origin, name=step.name)
    return Stored(records.values_list(Cast("result", TextField()), flat=True).get())
