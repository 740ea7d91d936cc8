"""What the tables of the world hold: each is read once, when it is first asked for, by a statement that is made once."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from django.db import connection
from django.db.models import Model

from tests.testapp.models import Effect, Order
from timeline.models import Event, LogEntry, Opening, RunEntry, ScheduledTask, StepRecord, TimelineRun, Wake

TABLES: Final = (Wake, Opening, RunEntry, StepRecord, LogEntry, ScheduledTask, TimelineRun, Event, Effect, Order)

Row = Any  # Named as the columns of its table are, with values as the model has them.


class Seen:
    """All rows of each table, in the order of their primary keys. Who has changed something since looks anew."""

    def __init__(self) -> None:
        self._rows: dict[type[Model], list[Row]] = {}

    def __getitem__(self, model: type[Model]) -> list[Row]:
        if model not in self._rows:
            self._rows[model] = _read(model)
        return self._rows[model]

    def tasks(self, *keys: str, **columns: Any) -> list[Row]:
        """Tasks of these kinds, or of all, whose columns have these values."""
        return [row for row in self[ScheduledTask] if (not keys or row.task_key in keys) and _has(row, columns)]

    def of(self, model: type[Model], **columns: Any) -> list[Row]:
        """Rows whose columns have these values."""
        return [row for row in self[model] if _has(row, columns)]


def _has(row: Row, columns: dict[str, Any]) -> bool:
    return all(getattr(row, name) == value for name, value in columns.items())


def _read(model: type[Model]) -> list[Row]:
    sql, converted, make = _statement(model)
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [make(row) for row in converted(cursor.fetchall())]


@cache
def _statement(model: type[Model]) -> tuple[str, Callable[[Any], Any], Callable[[Any], Row]]:
    """What reads a table, what makes of columns what the model has, and what names them."""
    names = [field.attname for field in model._meta.concrete_fields]
    compiler = model._base_manager.order_by("pk").values_list(*names).query.get_compiler(connection=connection)
    sql, parameters = compiler.as_sql()
    assert not parameters
    converters = compiler.get_converters([column for column, _sql, _name in compiler.select])
    return (
        sql,
        lambda rows: compiler.apply_converters(rows, converters),
        namedtuple(model.__name__, names)._make,
    )
