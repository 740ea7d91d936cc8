"""What is wrong with a declared limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timeline.definition.model_fit import by_problems
from timeline.definition.names import MAX_KEY
from timeline.features.limits.declaration import MAX_LIMIT, Limit, limit_of
from timeline.hooks import Rules

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Definition, Task
    from timeline.hooks import Problem


def limit_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[tuple[str, str]]:
    """List what is wrong with the limit of a task, as (problem, remedy)."""
    limit = declared.options.limit
    if limit is None:
        return
    if not isinstance(limit, Limit) and type(limit) is not int:
        yield f"has limit = {limit!r}.", "Use a whole number, or Limit(…)."
        return
    if declared.options.bulk is not None:
        yield "has bulk and limit: one call takes many at once.", "Leave out one of them."
    yield from _limit_problems(definition, limit if isinstance(limit, Limit) else Limit(limit))


def _limit_problems(definition: Definition, limit: Limit) -> Iterator[tuple[str, str]]:
    if type(limit.most) is not int or not 1 <= limit.most <= MAX_LIMIT:
        yield f"has a limit of {limit.most!r}.", f"Use a whole number from 1 to {MAX_LIMIT:,}."
    if not isinstance(limit.key, str) or len(limit.key) > MAX_KEY:
        yield f"has a limit with key = {limit.key!r}.", f"Use text of {MAX_KEY} characters at most."
    if not isinstance(limit.by, str):
        yield f"has a limit with by = {limit.by!r}.", "Name a field of the entity, as text."
    elif limit.by and not definition.label:
        yield f"has a limit by {limit.by!r}, but no entity to read it from.", "Leave by out, or name the entity."
    if limit.until not in ("attempt", "end"):
        yield f"has a limit with until = {limit.until!r}.", 'Use "attempt" or "end".'
    if limit.on_discard not in ("hold", "open"):
        yield f"has a limit with on_discard = {limit.on_discard!r}.", 'Use "hold" or "open".'
    elif limit.on_discard == "open" and limit.until == "attempt":
        yield (
            'has a limit with on_discard = "open", and until = "attempt", where a place is free in any case.',
            'Leave on_discard out, or give until="end".',
        )


def _model_problems(definition: Definition, declared: Task[Any, ..., Any], model: type[Model]) -> Iterator[Problem]:
    limit = limit_of(declared)
    if limit is not None and limit.by:
        yield from by_problems(model, definition.label, "limit", limit.by)


RULES = Rules(options=(("limit", None),), of_task=(limit_problems,), of_task_and_model=(_model_problems,))
