"""Which task runs when another one has failed for good, and what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

from timeline.definition.handlers import Task

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.timing.whens import NamesTask

FAILED: Final = "failed"  # In the payload of the row: what has failed.
MAX_MESSAGE: Final = 2_000


class FailureOptions(TypedDict, total=False):
    """
    Args:
        on_failure: A task of the class, without a schedule, or its name. It gets a row when this one is discarded (not when it
            is cancelled), with what has failed in ``self.task.payload["failed"]``. None: nothing runs then.
    """

    on_failure: NamesTask | str | None


def handler_of(definition: Definition, declared: Task[Any, ..., Any]) -> Task[Any, ..., Any] | None:
    """The task that runs when this one has failed for good; None: none is declared, or there is none of this name."""
    given: object = declared.options.on_failure
    if isinstance(given, Task):
        return definition.tasks.get(given.name)
    return next((task for task in definition.tasks.values() if task.method_name == given), None) if given else None
