"""Reads what a class declares: its tasks and steps, and options that came later than names of some of them."""

from __future__ import annotations

from typing import Any, TypeVar

from timeline.definition.handlers import Task
from timeline.definition.steps import Step

Declared = TypeVar("Declared", Task[Any, ..., Any], Step[Any, ..., Any])


def unless_declared(option: Any, left_out: Any) -> Any:
    """An option that came later than tasks of its name: one that is called so keeps its key, and the option is left out."""
    return left_out if isinstance(option, Task | Step) else option


def names_of(key: Any) -> Any:
    """Write one name, or several, as several."""
    return (key,) if key and isinstance(key, str) else key or ()


def declared(cls: type, kind: type[Declared]) -> dict[str, Declared]:
    """The tasks, or the steps, of a class and of those that it inherits from, in the order declared."""
    found: dict[str, Declared] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            found.pop(name, None)
            if isinstance(value, kind):
                found[name] = value
    return found
