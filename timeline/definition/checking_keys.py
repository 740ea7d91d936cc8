"""Finds what is wrong with ``once`` and ``key`` of a declared timeline, and with a start by the clock, which is both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from timeline.definition.recurring import Recurring

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition


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


def recurring_problems(definition: Definition, start: Recurring) -> Iterator[tuple[str, str]]:
    """Give what is wrong with a start by the clock, each with its remedy."""
    yield from start.problems
    if definition.label:
        yield (
            f"starts on {start.word}, and has an entity: of which would it start a run?",
            "Leave the entity out, and let its handler find whom it is about.",
        )
    if definition.once:
        yield f"starts on {start.word}, and has once.", "Leave once out: each slot begins one run ever."
    if sum(isinstance(other, Recurring) for other in definition.starts_on) > 1:
        yield "starts by the clock in two ways.", "Put both into one cron(…), or declare two timelines."
