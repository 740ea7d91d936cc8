"""The rows from which runs are planned: lock them, or only read them. ``models/machine_rows.py`` says which rows these are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import date, datetime
from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import connections

from timeline.dialects import dialect_of
from timeline.models import ScheduledTask
from timeline.models.machine_rows import RowsToPlan
from timeline.models.statements import narrowed
from timeline.store.returned_rows import FIELDS, as_tasks, cursor_for_rows, rows_of, values_of


def lock_rows_to_plan(wanted: RowsToPlan, *, using: str) -> dict[UUID, list[ScheduledTask]]:
    """Lock the rows from which locked runs are planned, and read them: id of a run → its rows, if it has any."""
    return _by_run(_locked(wanted, {"locked"}, using))


def lock_rows_to_go_on(wanted: RowsToPlan, *, using: str) -> dict[UUID, list[ScheduledTask | RowToPlan]]:
    """As ``lock_rows_to_plan``, but reads little of rows that have ended. If most have, this takes a third of the time."""
    alive = {task.id: task for task in _locked(wanted, {"locked", "alive"}, using)}
    return _by_run([alive.get(row.id, row) for row in read_rows_to_plan(wanted, using=using)])


def _locked(wanted: RowsToPlan, how: set[str], using: str) -> list[ScheduledTask]:
    connection, columns = connections[using], tuple(FIELDS)
    with _found(wanted, columns, how, using) as cursor:
        return as_tasks(rows_of(cursor, connection, columns).values(), using) if cursor else []


def _by_run(rows: Iterable[Row]) -> dict[UUID, list[Row]]:
    found: dict[UUID, list[Row]] = {}
    for row in rows:
        if row.run_id is not None:
            found.setdefault(row.run_id, []).append(row)
    return found


@dataclass(slots=True)
class RowToPlan:
    """The columns of a task that a plan reads. Making it takes a tenth of the time of an instance of the model."""

    id: UUID
    run_id: UUID | None
    task_key: str
    occurrence: str
    state: str
    revision: int
    nominal_at: datetime
    scheduled_at: datetime
    planned_at: datetime | None
    anchor: str
    anchor_value: datetime | None
    anchor_date: date | None
    finished_at: datetime | None
    reason_code: str

    @property
    def task_name(self) -> str:
        """Name of the method of the task."""
        return self.task_key.partition(".")[2]


Row = TypeVar("Row", bound=ScheduledTask | RowToPlan)
READ: Final = tuple(column.name for column in fields(RowToPlan))


def read_rows_to_plan(wanted: RowsToPlan, *, using: str) -> list[RowToPlan]:
    """Read the rows from which runs are planned."""
    with _found(wanted, READ, set(), using) as cursor:
        return [RowToPlan(*row) for row in values_of(cursor, connections[using], READ)] if cursor else []


@contextmanager
def _found(wanted: RowsToPlan, columns: tuple[str, ...], how: set[str], using: str) -> Iterator[Any]:
    """Open a cursor that has these columns of the rows; None: no run is asked for."""
    if not wanted.whole and not wanted.in_states:
        yield None
        return
    connection, dialect = connections[using], dialect_of(using)
    names = {name for name in ("whole", "in_states", "others", "visits") if getattr(wanted, name)}
    runs = {name: dialect.list_of(key.hex for key in getattr(wanted, name)) for name in ("whole", "in_states")}
    keys = {name: dialect.list_of(getattr(wanted, name)) for name in ("others", "bound", "visits")}
    with cursor_for_rows(connection) as cursor:
        cursor.execute(statement_of_rows(using, columns, frozenset(names | how)), runs | keys)
        yield cursor


@cache
def statement_of_rows(using: str, columns: tuple[str, ...], names: frozenset[str]) -> str:
    """The statement, with these columns, and with the optional lines of these names."""
    read = ", ".join(str(FIELDS[name].column) for name in columns)
    return narrowed(dialect_of(using).sql("rows_to_plan").replace("{columns}", read), names)
