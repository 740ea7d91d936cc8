"""A task as it was when a request was answered, kept as plain JSON, so that it can be shown again to whoever may see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.db.models import Field

from timeline.models import ScheduledTask

# Read by few, and shown by no list: they are not kept a second time. Whoever asks a task for them gets what its row has now.
_LEFT_OUT: Final = ("payload", "result", "error")


def columns_of(task: ScheduledTask) -> dict[str, str | None]:
    """Write a task down: names of columns → values as text."""
    return {
        field.attname: None if field.value_from_object(task) is None else field.value_to_string(task)
        for field in _fields()
    }


def row_of(columns: Mapping[str, str | None], *, using: str) -> ScheduledTask:
    """
    Read back a task that was written down, perhaps by an earlier version.

    Args:
        columns: As ``columns_of`` gives them.
        using: Database alias it lives in.
    """
    fields = [field for field in _fields() if field.attname in columns]
    values = [None if (text := columns[field.attname]) is None else field.to_python(text) for field in fields]
    return ScheduledTask.from_db(using, [field.attname for field in fields], values)


def _fields() -> Iterator[Field[Any, Any]]:
    return (field for field in ScheduledTask._meta.concrete_fields if field.attname not in _LEFT_OUT)
