"""Finds what is wrong with the brake of a destructive task."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline.features.holds.declaration import PARKED_WITHIN
from timeline.hooks import Rules

if TYPE_CHECKING:
    from timeline.definition import Definition, Task
    from timeline.definition.handlers import Options
    from timeline.hooks import Problem


MAX_PARK_ABOVE: Final = 1_000_000
MAX_PARK_WITHIN: Final = timedelta(days=7)


def brake_problems(options: Options) -> Iterator[tuple[str, str]]:
    """List what is wrong with these options of a task, as (problem, remedy)."""
    most: object = options.park_above
    within: object = options.park_within
    if type(options.destructive) is not bool:
        yield f"has destructive = {options.destructive!r}.", "Use True or False."
    elif most is not None and (type(most) is not int or not 1 <= most <= MAX_PARK_ABOVE):
        yield f"has park_above = {most!r}.", f"Use a whole number from 1 to {MAX_PARK_ABOVE:,}."
    elif options.destructive and most is None:
        yield "is destructive, and has no park_above.", "Say how many of it may start within an hour: park_above=100."
    elif most is not None and not options.destructive:
        yield "has park_above, and is not destructive.", "Give destructive=True, too, or leave park_above out."
    elif not (isinstance(within, timedelta) and timedelta(0) < within <= MAX_PARK_WITHIN):
        yield f"has park_within = {within!r}.", f"Use a positive timedelta, {MAX_PARK_WITHIN.days} days at most."
    elif most is None and within != PARKED_WITHIN:
        yield "has park_within, and no park_above.", "Give destructive=True and park_above, too, or leave it out."


def _of_task(_definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    yield from brake_problems(declared.options)


RULES = Rules(
    options=(("destructive", False), ("park_above", None), ("park_within", PARKED_WITHIN)),
    of_task=(_of_task,),
)
