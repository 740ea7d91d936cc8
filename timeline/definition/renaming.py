"""Methods of tasks that had another name: their rows keep it, so that processes of the old code know them, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from timeline.definition.handlers import Task
from timeline.definition.naming import MAX_NAME, is_name
from timeline.exceptions import DefinitionError


def by_stored_name(cls: type, tasks: Mapping[str, Task[Any, ..., Any]]) -> dict[str, Task[Any, ..., Any]]:
    """
    Tasks by the names that their rows have.

    Args:
        cls: The timeline.
        tasks: Name of the method → task, in the order declared.

    Raises:
        DefinitionError: naming ``was``.
    """
    found: dict[str, Task[Any, ..., Any]] = {}
    for method, task in tasks.items():
        was = task.options.was
        if was and not is_name(was):
            remedy = f"Use the name it had before: lower-case letters, digits and _, {MAX_NAME} at most."
            raise DefinitionError(cls.__name__, f"has was = {was!r}.", remedy, method)
        name = was or method
        if name in found or (was and was in tasks):
            remedy = f"Leave was={name!r} with one of them, or take it out."
            raise DefinitionError(cls.__name__, f"was {name!r}, and so is another task.", remedy, method)
        found[name] = task
    return found
