"""What is wrong with a declared rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from timeline.definition.model_fit import by_problems
from timeline.definition.names import MAX_KEY, key_with
from timeline.features.rates.declaration import MAX_RATE, Rate, rate_of
from timeline.hooks import Rules

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Definition, Task
    from timeline.hooks import Problem

_WORDS: Final = {
    word: letter
    for letter, words in {"s": "sec second", "m": "min minute", "h": "hr hour", "d": "day"}.items()
    for word in (*words.split(), *(f"{each}s" for each in words.split()))
}
_FORM: Final = f'Use text such as "100/h": 1 to {MAX_RATE:,}, in a second (s), minute (m), hour (h) or day (d).'


def _problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    given: object = declared.options.rate
    if given is None:
        return
    if not isinstance(given, str | Rate):
        yield f"has rate = {given!a:.60}.", _FORM
        return
    if declared.options.bulk is not None:
        yield "has bulk and rate: one call takes many at once.", "Leave out one of them."
    rate = given if isinstance(given, Rate) else Rate(given)
    if rate.read is None:
        yield f"has a rate of {rate.text!a:.60}.", _meant(rate.text)
    # Another text is stored for a key that is too long, or that no database can store.
    if not isinstance(rate.key, str) or key_with(rate.key, "", by="") != rate.key:
        yield f"has a rate with key = {rate.key!a:.60}.", f"Use text of {MAX_KEY} characters at most."
    if not isinstance(rate.by, str):
        yield f"has a rate with by = {rate.by!a:.60}.", "Name a field of the entity, as text."
    elif rate.by and not definition.label:
        yield f"has a rate by {rate.by!r}, but no entity to read it from.", "Leave by out, or name the entity."


def _meant(text: object) -> str:
    """The rate that may be meant: with the letter for a word, and without blanks."""
    most, _slash, unit = str(text).replace(" ", "").replace(",", "").casefold().partition("/")
    tidied = Rate(f"{most}/{_WORDS.get(unit, unit)}")
    return f"Did you mean {tidied.text!r}? {_FORM}" if tidied.read is not None else _FORM


def _model_problems(definition: Definition, declared: Task[Any, ..., Any], model: type[Model]) -> Iterator[Problem]:
    rate = rate_of(declared) if isinstance(declared.options.rate, str | Rate) else None
    if rate is not None and rate.by:
        yield from by_problems(model, definition.label, "rate", rate.by)


RULES = Rules(options=(("rate", None),), of_task=(_problems,), of_task_and_model=(_model_problems,))
