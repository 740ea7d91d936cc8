"""Let a way make moves, and compare each column of each row, and of the log, with the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from tests.store.moves import NOW, TASK_KEY
from tests.store.rules import Case, FromNow, Move, Row, entries_of, row_after
from timeline.ids import uuid7
from timeline.models import LogEntry, ScheduledTask

TICK: Final = timedelta(milliseconds=1)  # SQLite's clock tells no less.
ENTRY: Final = ("seq", "at", "from_state", "to_state", "attempt", "actor", "reason_code", "reason", "detail")
COLUMNS: Final = [field.attname for field in ScheduledTask._meta.concrete_fields]


class Made(NamedTuple):
    """
    What a way says that it made.

    Args:
        moves: As they were made, one for each row: some choose a token.
        count: Of rows changed.
        tasks: Those that it gives back, if it gives any.
    """

    moves: Sequence[Move | None]
    count: int
    tasks: Sequence[ScheduledTask] = ()


class Window(NamedTuple):
    """Machine time around what was done."""

    since: datetime
    until: datetime


@contextmanager
def undone() -> Iterator[None]:
    """Undo what is done within. It does not count as a transaction of the caller's, as those of Django's tests do not."""
    block = transaction.atomic()
    block._from_testcase = True
    with block:
        yield
        transaction.set_rollback(True)


def check(way: Any, rows: Sequence[dict[str, Any]], moves: Sequence[Move | None], common: Move) -> None:
    """
    Let a way make the moves, and undo it.

    Args:
        way: One of ``ways.py``.
        rows: What is there before, without what tells them apart.
        moves: One for each row; None: the way has no move from there, and must leave the row alone.
        common: What the moves have in common.

    Raises:
        AssertionError: naming what differs from the rules.
    """
    with undone():
        tasks = _insert(way, rows)
        before = [row_of(task) for task in tasks]
        since = machine_now()
        made = way.make(tasks, moves, common)
        window = Window(since, machine_now())
        after = Stored.of(row["id"] for row in before)
        problems = [
            problem
            for row, move in zip(before, made.moves, strict=True)
            for problem in _differences(row, move, after, window)
        ]
        problems += _wrong_answers(made, before, after)
    assert not problems, "\n".join([f"{way.name}:", *problems])


def _insert(way: Any, rows: Sequence[dict[str, Any]]) -> list[ScheduledTask]:
    fitted = [{"task_key": TASK_KEY, **row, **way.fits(row, len(rows))} for row in rows]
    tasks = [ScheduledTask(id=key, occurrence=str(key), **row) for row in fitted for key in [uuid7()]]
    ScheduledTask.objects.bulk_create(tasks)
    there = ScheduledTask.objects.in_bulk([task.pk for task in tasks])
    return [there[task.pk] for task in tasks]


def row_of(task: ScheduledTask) -> Row:
    """The columns of a row, as they were read."""
    return {name: task.__dict__[name] for name in COLUMNS if name in task.__dict__}


class Stored(NamedTuple):
    """What the tables have of some tasks: id → row, and id → entries of the log."""

    rows: dict[UUID, Row]
    log: dict[UUID, list[dict[str, Any]]]

    @classmethod
    def of(cls, ids: Iterable[UUID]) -> Stored:
        """Read it, in the order given."""
        ids = list(ids)
        there = ScheduledTask.objects.in_bulk(ids)
        rows = {key: row_of(there[key]) for key in ids}
        log: dict[UUID, list[dict[str, Any]]] = {key: [] for key in rows}
        for entry in LogEntry.objects.filter(task__in=rows).order_by("seq").values(*ENTRY, "task_id"):
            log[entry.pop("task_id")].append(entry)
        return cls(rows, log)


def _differences(row: Row, move: Move | None, after: Stored, window: Window) -> Iterator[str]:
    if move is None:
        expected, told, name = dict(row), [], f"{row['state']}, to be left alone"
    else:
        case = Case(row, move, NOW)
        expected, told, name = row_after(case), entries_of(case), " ".join([row["state"], *move.triggers])
    stored, log = after.rows[row["id"]], after.log[row["id"]]
    for column in COLUMNS:
        if not _is(stored[column], expected[column], window):
            yield f"  {name}: {column} is {stored[column]!r}, not {expected[column]!r}; it was {row[column]!r}"
    if log != told:
        yield f"  {name}: the log says {log}, not {told}"


def _wrong_answers(made: Made, before: Sequence[Row], after: Stored) -> Iterator[str]:
    changed = [row["id"] for row, move in zip(before, made.moves, strict=True) if move is not None]
    if made.count != len(changed):
        yield f"  it says that it changed {made.count} rows, not {len(changed)}"
    if made.tasks and sorted(task.pk for task in made.tasks) != sorted(changed):
        yield f"  it gives {[task.pk for task in made.tasks]}, not {changed}"
    for task in made.tasks:
        for column, value in row_of(task).items():
            if value != (stored := after.rows[task.pk][column]):
                yield f"  it gives a task whose {column} is {value!r}; stored is {stored!r}"


def _is(value: Any, expected: Any, window: Window) -> bool:
    if not isinstance(expected, FromNow):
        return bool(value == expected)
    return value is not None and window.since - TICK <= value - expected.length <= window.until + TICK


def machine_now() -> datetime:
    """The database's real clock."""
    if connection.vendor != "postgresql":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [now] = cursor.fetchone()
    return now
