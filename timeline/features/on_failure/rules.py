"""What is wrong with ``on_failure``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timeline.definition.handlers import Task
from timeline.features.on_failure.declaration import handler_of
from timeline.hooks import Rules
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from timeline.definition.check_timelines import Problem
    from timeline.definition.definitions import Definition


def _problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    given: object = declared.options.on_failure
    if given is None:
        return
    if not isinstance(given, Task | str):
        yield f"has on_failure = {given!a:.60}.", "Give a task of the class that is declared above, or its name."
        return
    handler = handler_of(definition, declared)
    if handler is None:
        named = given.name if isinstance(given, Task) else given
        known = [task.method_name for task in definition.tasks.values() if task.when is None and task is not declared]
        remedy = did_you_mean(named, known, otherwise="Declare it in this class, with @task() and no schedule.")
        yield f"has on_failure = {named!a:.60}, which is no task of the class.", remedy
    elif handler is declared:
        yield "has itself as on_failure.", "Declare another task, with @task() and no schedule."
    elif handler.when is not None:
        remedy = "Leave its schedule out, @task(): it gets a row when the other has failed."
        yield f"has on_failure = {handler.name!r}, which has a schedule of its own.", remedy
    elif handler.options.on_failure is not None:
        yield (
            f"has on_failure = {handler.name!r}, which has on_failure itself.",
            "Leave it out there: retry=… tries again.",
        )


RULES = Rules(options=(("on_failure", None),), of_task=(_problems,))
