"""Finds what is wrong with the options of tasks, and with the key and the clock of a timeline."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from timeline.definition.names import title_problems
from timeline.timing import LONGEST_SPREAD, Window, is_spread

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.definition.handlers import Task


def beside_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[tuple[str, str]]:
    """List what is wrong with these options of a task, as (problem, remedy)."""
    yield from title_problems(declared.options.title)
    yield from _aside_problems(definition, declared)
    if declared.options.spread is not None:
        yield from _spread_problems(declared)
    if declared.options.window is not None:
        yield from _window_problems(declared)


def _aside_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[tuple[str, str]]:
    aside, when = declared.options.aside, declared.when
    if type(aside) is not bool:
        yield f"has aside = {aside!r}.", "Use True or False."
        return
    if not aside:
        predecessor = definition.tasks.get(getattr(when, "predecessor_name", ""))
        if predecessor is not None and predecessor.options.aside is True:
            yield f"follows {predecessor.name!r}, which is aside, and keeps the run open.", "Give it aside=True, too."
        return
    if when is None:
        yield "is aside, and has no schedule.", "Leave aside out: what schedule() makes keeps no run open."
    elif all(task.options.aside for task in definition.tasks.values() if task.when is not None):
        yield (
            "is aside, and so is all else: nothing would keep the run open.",
            "Let one task with a schedule be not aside.",
        )


def _spread_problems(declared: Task[Any, ..., Any]) -> Iterator[tuple[str, str]]:
    spread, expires, when = declared.options.spread, declared.options.expires, declared.when
    if not is_spread(spread):
        yield f"has spread = {spread!r}.", f"Use a positive timedelta, {LONGEST_SPREAD.days} days at most."
    elif when is None:
        yield "has spread, but no schedule to spread.", "Leave it out: schedule() names the time."
    elif getattr(when, "is_for_each", False):
        yield "has spread, and is fanned out.", "Leave it out, or spread the task that fans out."
    elif isinstance(expires, timedelta) and isinstance(spread, timedelta) and expires <= spread:
        yield (
            "may expire before it is due: expires is no longer than spread.",
            "Give a longer expires, or a shorter spread.",
        )


def _window_problems(declared: Task[Any, ..., Any]) -> Iterator[tuple[str, str]]:
    hours, when = declared.options.window, declared.when
    if not isinstance(hours, Window):
        yield f"has window = {hours!r}.", 'Use window("09:00-17:00").'
        return
    yield from hours.problems
    if when is None:
        yield "has a window, but no schedule.", "Leave it out: schedule() names the time."
    elif getattr(when, "is_for_each", False):
        yield "has a window, and is fanned out.", "Give the window to the task that fans out."
    elif getattr(when, "awaits", ()):
        yield "has a window, and waits for an event.", "Leave it out, or give it to a task that follows."
    elif hours.outside == "cancel" and declared.options.spread is not None:
        yield 'has spread, and a window with outside="cancel".', "Leave one of both out."


def key_problems(definition: Definition) -> Iterator[tuple[str, str]]:
    """Give what is wrong, each with its remedy."""
    if type(definition.once) is not bool:
        yield f"has once = {definition.once!r}.", "Use True or False."
    yield from _again_problems(definition)
    key: object = definition.key
    if not key:
        return
    if not isinstance(key, tuple) or not all(isinstance(name, str) and name for name in key):
        yield f"has key = {key!r}.", 'Name fields of the payload, as a tuple of texts: ("payment_id", "attempt").'
    elif len(set(key)) < len(key):
        yield f"has key = {key!r}, with a field twice.", "Name each field once."
    elif not definition.starts_on:
        yield (
            "has a key, but no event starts it whose payload would have that.",
            "Name the event, or give start() the key.",
        )
    elif not all(isinstance(start, str) for start in definition.starts_on):
        yield (
            "has a key, and starts on what is no event and has no payload.",
            "Start on events only, or leave the key out.",
        )


def _again_problems(definition: Definition) -> Iterator[tuple[str, str]]:
    if type(definition.again) is not bool:
        yield f"has again = {definition.again!r}.", "Use True or False."
    elif definition.again and definition.once:
        yield "has again, and once: it would never begin again.", "Leave one of them out."
    elif definition.again and definition.key:
        yield "has again, and a key.", "Leave again out: an event with another key begins a run of its own."
    elif definition.again and not any(isinstance(start, str) for start in definition.starts_on):
        yield "has again, but no event starts it.", "Name the event, or leave again out."
