"""What is wrong with ``debounce``, and which events it lets a class hear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db.models import ForeignKey

from timeline.definition.model_fit import field_of, meant_field, meant_model
from timeline.features.debounce.declaration import HEARD, LONGEST, Debounce, debounced
from timeline.hooks import Rules

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Definition, Task
    from timeline.hooks import Problem


def _problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    debounce = declared.options.debounce
    if debounce is None:
        return
    if not isinstance(debounce, Debounce):
        yield f"has debounce = {debounce!a:.60}.", "Use Debounce(event, quiet=…)."
        return
    if not definition.label:
        yield "has debounce, but no entity whose bursts there could be.", "Name the entity of the class."
    if declared.when is not None:
        remedy = "Leave it out, @task(debounce=…): the last event of a burst says when the task is due."
        yield "has debounce and a schedule.", remedy
    yield from _event_problems(definition, debounce)
    yield from _length_problems(debounce)
    yield from _whose_problems(debounce)
    HEARD.update(name for name in (*debounce.events, *definition.exits) if isinstance(name, str))


def _event_problems(definition: Definition, debounce: Debounce) -> Iterator[Problem]:
    if not isinstance(debounce.events, tuple) or not debounce.events:
        yield f"has a debounce with event = {debounce.event!r}.", "Name an event, or several in a tuple."
        return
    for name in debounce.events:
        if not isinstance(name, str) or not 0 < len(name) <= 100 or re.search(r"\s", name):
            yield f"has a debounce with event = {name!r}.", "Give text like 'page.edited'."
        elif name in definition.exits:
            yield f"has a debounce of {name!r}, which is an exit of the class.", "Name it in one of them only."


def _length_problems(debounce: Debounce) -> Iterator[Problem]:
    good = True
    for name in ("quiet", "at_latest"):
        length = getattr(debounce, name)
        if name == "at_latest" and length is None:
            continue
        if not isinstance(length, timedelta) or not timedelta(0) < length <= LONGEST:
            good = False
            yield f"has a debounce with {name} = {length!r}.", "Use a positive timedelta, of 366 days at most."
    if good and debounce.at_latest is not None and debounce.at_latest < debounce.quiet:
        problem = f"has a debounce with at_latest = {debounce.at_latest}, which is less than quiet = {debounce.quiet}."
        yield problem, "Give a longer at_latest, or leave it out."


def _whose_problems(debounce: Debounce) -> Iterator[Problem]:
    if not isinstance(debounce.of, str) or (debounce.of and debounce.of.count(".") != 1):
        yield f"has a debounce with of = {debounce.of!r}.", 'Give the label of a model, "shop.Page".'
    elif not isinstance(debounce.by, str):
        yield f"has a debounce with by = {debounce.by!r}.", "Name a foreign key, as text."
    elif debounce.by and not debounce.of:
        yield (
            f"has a debounce by {debounce.by!r}, and does not say of which model.",
            'Name it: of="shop.Page"; or leave by out.',
        )
    elif debounce.of and not debounce.by:
        yield (
            f"has a debounce of {debounce.of!r}, and does not say what leads from there to the entity.",
            "Name a foreign key: by=…; or leave of out.",
        )


def _model_problems(definition: Definition, declared: Task[Any, ..., Any], model: type[Model]) -> Iterator[Problem]:
    debounce = declared.options.debounce
    if debounce is None or not debounce.of:
        return
    try:
        whose = apps.get_model(debounce.of)
    except LookupError:
        yield f"has a debounce of {debounce.of!r}, and no such model is installed.", meant_model(debounce.of)
        return
    field = field_of(whose, debounce.by)
    if field is None:
        yield f"has a debounce by {debounce.by!r}, which {debounce.of} does not have.", meant_field(whose, debounce.by)
    elif not isinstance(field, ForeignKey) or not _leads_to(field, model):
        problem = f"has a debounce by {debounce.by!r}, which does not lead from {debounce.of} to {definition.label}."
        yield problem, f"Name a foreign key to the primary key of {definition.label}."


def _leads_to(field: ForeignKey[Any, Any], model: type[Model]) -> bool:
    ends: Any = field.related_model
    return ends._meta.concrete_model is model._meta.concrete_model and field.target_field.primary_key


def _events(definition: Definition) -> Iterator[tuple[str, tuple[str, ...]]]:
    for _name, debounce in debounced(definition):
        yield debounce.label(definition), debounce.events


RULES = Rules(
    options=(("debounce", None),), of_task=(_problems,), of_task_and_model=(_model_problems,), events=(_events,)
)
