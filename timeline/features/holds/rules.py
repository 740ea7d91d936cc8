"""Finds what is wrong with the brake of a destructive task, and with tags."""

from __future__ import annotations

import re
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
MAX_TAG: Final = 50
_TAG: Final = re.compile(rf"[a-z][a-z0-9_-]{{0,{MAX_TAG - 1}}}")


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


def tag_problems(tags: object) -> Iterator[tuple[str, str]]:
    """List what is wrong with the tags of a task, as (problem, remedy)."""
    if isinstance(tags, str):
        yield f"has tags = {tags!r}, which is one text.", f"Give a tuple: tags=({tags!r},)."
    elif not isinstance(tags, tuple):
        yield f"has tags = {tags!r}.", 'Give a tuple: tags=("mail",).'
    else:
        for tag in tags:
            if not isinstance(tag, str) or not _TAG.fullmatch(tag):
                remedy = f"Use small letters, digits, _ and -, a letter first, {MAX_TAG} characters at most."
                yield f"has a tag {tag!r}.", remedy
            elif tags.count(tag) > 1:
                yield f"has the tag {tag!r} twice.", "Give it once."
                return


def _of_task(_definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    yield from brake_problems(declared.options)
    yield from tag_problems(declared.options.tags)


RULES = Rules(
    options=(("destructive", False), ("park_above", None), ("park_within", PARKED_WITHIN), ("tags", ())),
    of_task=(_of_task,),
)
