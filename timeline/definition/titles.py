"""Titles: what people call the events, states, exits and conditions of a timeline. Tasks have their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from timeline.definition.names import title_problems
from timeline.payloads import as_text
from timeline.suggestions import did_you_mean

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition


def read_titles(declared: Any) -> Any:
    """Name → title, with names as plain text; what is no dict stays as it is, and is refused by ``problems_of_titles``."""
    if not isinstance(declared, Mapping):
        return declared
    return {as_text(name) if isinstance(name, str) else name: title for name, title in declared.items()}


def problems_of_titles(definition: Definition) -> Iterator[tuple[str, str]]:
    """List what is wrong with the titles of a timeline, as (problem, remedy)."""
    titles: object = definition.titles
    if not isinstance(titles, Mapping):
        yield f"has titles = {titles!a:.60}.", 'Use a dict: {"payment.configured": _("the customer paid")}.'
        return
    is_own = "titles" in vars(definition.cls)  # What is inherited may name what only its base has.
    guards = [guard for task in definition.tasks.values() for guard in task.guards.values()]
    conditions = {name for guard in guards if (name := getattr(guard, "__name__", ""))}
    known = {*definition.events, *definition.exits.values(), *definition.states, *conditions}
    for name, title in titles.items():
        if is_own and name not in known:
            remedy = "Name an event, a state, an exit or a condition of it; a task has its title in @task(title=…)."
            yield (
                f"has a title for {name!a:.60}, which it does not have.",
                did_you_mean(name, known, otherwise=remedy),
            )
        for problem, remedy in title_problems(title):
            yield f"{problem.rstrip('.')} for {name!r}.", remedy
