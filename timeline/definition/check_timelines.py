"""Finds what is wrong with a declared timeline, and says it with class, method and remedy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from timeline.definition.check_tasks import beside_problems, key_problems
from timeline.definition.context import RESERVED, VERBS
from timeline.definition.handlers import Task
from timeline.definition.names import (
    MAX_NAME,
    attribute_problems,
    is_name,
    problems_of_titles,
    refuse_keywords,
    without_quotes,
)
from timeline.definition.retry import Retry
from timeline.definition.starts import Created
from timeline.exceptions import DefinitionError
from timeline.features.steps.declaration import Step
from timeline.hooks import rules

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.definition.handlers import Options
    from timeline.definition.timelines import Timeline
    from timeline.timing import When

    Problem = tuple[str, str]

MAX_EVENT: Final = 100
MAX_BULK: Final = 1_000
MAX_EXPIRES: Final = timedelta(days=36525)

# What a class is asked for, so no task may be called that.
OPTIONS: Final = frozenset(
    {"entity", "name", "starts_on", "exits", "time_zone", "language", "owner", "shadow", "definition"}
)

# What may be said in a class; tasks may be called as the last five, which came later.
NAMED: Final = frozenset({*OPTIONS - {"definition"}, "once", "again", "key", "search", "titles"})

_LABEL: Final = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*\Z")


def check_names(cls: type[Timeline], declaring: Sequence[type], options: Collection[str]) -> None:
    """Refuse names that mean, or almost mean, something to ``Timeline``, used otherwise; ``DefinitionError``."""
    for home in declaring:
        for name, value in vars(home).items():
            for problem, remedy in _name_problems(name, value, own=home is cls):
                raise DefinitionError(cls.__name__, problem, remedy, name)
    for home_name, name, (problem, remedy) in attribute_problems(cls, declaring, options):
        raise DefinitionError(home_name, problem, remedy, name)


def check_shape(definition: Definition) -> None:
    """Check all that can be seen without models; ``DefinitionError`` for the first mistake found."""
    for problem, remedy in _class_problems(definition):
        raise DefinitionError(definition.cls.__name__, problem, remedy)
    for name, declared in definition.tasks.items():
        for problem, remedy in _task_problems(definition, name, declared):
            raise DefinitionError(definition.cls.__name__, problem, remedy, name)
    for problem, remedy in problems_of_titles(definition):
        raise DefinitionError(definition.cls.__name__, problem, remedy)
    for ask in rules().of_parts:
        for name, (problem, remedy) in ask(definition):
            raise DefinitionError(definition.cls.__name__, problem, remedy, name)


def _name_problems(name: str, value: object, *, own: bool) -> Iterator[Problem]:
    if name in RESERVED:
        yield "is the name of what a handler reads from self.", f"Use another than {', '.join(sorted(RESERVED))}."
    elif name in VERBS:
        yield "is the name of what a handler calls on self.", f"Use another than {', '.join(sorted(VERBS))}."
    elif (name in OPTIONS and isinstance(value, Task | Step)) or (name == "definition" and own):
        yield "is the name of an option of the class.", f"Use another than {', '.join(sorted(OPTIONS))}."
    elif isinstance(wrapped := getattr(value, "__func__", getattr(value, "fget", None)), Task | Step):
        word = "@task" if isinstance(wrapped, Task) else "@step"
        yield f"has another descriptor around {word}.", f"Put {word} directly above a plain def."
    elif isinstance(value, partial) and value.func in (Task, refuse_keywords):
        yield "is decorated without parentheses.", "Write @task(…), or @task() without a schedule."
    elif isinstance(value, partial) and value.func is Step:
        yield "is no method.", "Put @step, or @step(…), directly above a def."


def _class_problems(definition: Definition) -> Iterator[Problem]:
    cls = definition.cls
    if not is_name(definition.name):
        yield f"has the name {definition.name!r}.", f"Use lower-case letters, digits and _, {MAX_NAME} at most."
    if cls.entity is not None and not (isinstance(cls.entity, str) and _LABEL.match(cls.entity)):
        yield f"has entity = {cls.entity!r}.", 'Name the model as text, "app.Model", or None for a system timeline.'
    yield from _content_problems(definition)
    yield from _start_problems(definition)
    yield from _exit_problems(definition.exits)
    for option in ("time_zone", "language", "owner"):
        field_name = getattr(cls, option)
        if field_name and not isinstance(field_name, str):
            yield f"has {option} = {field_name!r}.", "Name a field of the entity, as text."
        elif field_name and not definition.label:
            yield f"has {option}, but no entity to read it from.", f"Remove {option}, or name the entity."
    yield from _search_problems(definition)
    if type(definition.shadow) is not bool:
        yield f"has shadow = {definition.shadow!r}.", "Use True or False; make a bool of text from the environment."
    yield from key_problems(definition)
    for ask in rules().of_class:
        yield from ask(definition)


def _content_problems(definition: Definition) -> Iterator[Problem]:
    cls = definition.cls
    if definition.has_states:
        return
    if isinstance(getattr(cls, "table", None), Mapping) and hasattr(cls, "initial"):
        yield "has a table and an initial state, but is no machine.", "Inherit from Machine."
    if not definition.tasks:
        yield "declares no task.", "Decorate a method with @task(…), or declare the class abstract=True."


def _search_problems(definition: Definition) -> Iterator[Problem]:
    search: object = definition.search
    if not isinstance(search, tuple) or not all(isinstance(name, str) and name for name in search):
        yield f"has search = {search!r}.", 'Name fields of the entity, as a tuple of texts: ("email", "name").'
    elif search and not definition.label:
        yield "has search, but no entity that is to be found.", "Remove search, or name the entity."


def _start_problems(definition: Definition) -> Iterator[Problem]:
    for start in definition.starts_on:
        if isinstance(start, Created):
            if not definition.label:
                yield "starts on created(), but has no entity.", "Name the entity, or start on an event."
        elif not isinstance(start, str) and hasattr(start, "problems_of"):
            yield from start.problems_of(definition)
        elif not _is_event_name(start):
            yield (
                f"has starts_on = {start!r}.",
                "Use names of events, as text or a tuple of them, created(), after_run(…), or daily(…) and its kin.",
            )


def _exit_problems(exits: object) -> Iterator[Problem]:
    if not isinstance(exits, Mapping):
        yield f"has exits = {exits!r}.", 'Use a dict: {"name.of.event": "name of the exit"}.'
        return
    for event, exit_name in exits.items():
        if not _is_event_name(event):
            yield f"has an exit on {event!r}.", f"Use the name of an event: text, {MAX_EVENT} characters at most."
        if not isinstance(exit_name, str) or not exit_name or len(exit_name) > MAX_NAME:
            yield f"calls an exit {exit_name!r}.", f"Use text of 1 to {MAX_NAME} characters."


def _is_event_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MAX_EVENT and not re.search(r"\s", name)


def _task_problems(definition: Definition, name: str, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    if not is_name(name) and not declared.is_timer:
        yield "is no name for a task.", f"Use lower-case letters, digits and _, {MAX_NAME} at most."
    if name != declared.name:
        yield f"is the task {declared.name!r} under another name.", "Keep the name of the method."
    yield from _handler_problems(definition, declared)
    yield from _when_problems(definition, declared)
    yield from _option_problems(definition, declared)


def _handler_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    if not inspect.isfunction(declared.method):
        yield "is not a plain method.", "Put @task directly above a def, without other descriptors."
        return
    if declared.is_async and declared.options.atomic:
        yield (
            "is async and atomic.",
            "Give atomic=False: a transaction belongs to one thread, and these run side by side.",
        )
    if declared.is_async and declared.options.bulk is not None:
        yield "is async and takes many entities.", "Declare it with def, or without bulk."
    wanted = ["self", "entity"] if definition.label else ["self"]
    try:
        inspect.signature(declared.method).bind(*wanted)
    except TypeError:
        name, entity = declared.method_name, definition.label.partition(".")[2]
        takes = f"self and the entity: def {name}(self, {entity})"
        alone = f"self alone, as the timeline has no entity: def {name}(self)"
        remedy = f"A handler takes {takes if definition.label else alone}."
        yield "takes other arguments than it is called with.", remedy


def _when_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    when = declared.when
    if when is None:
        return
    if not hasattr(when, "problems"):
        yield f"has the schedule {when!r}.", "Use after(…), before(…), at(…), on(…), each_of(…) or wait_for(…)."
        return
    yield from when.problems
    if when.awaits and declared.options.bulk is not None:
        yield "waits for an event, and has bulk.", "Each waits for itself: remove bulk."
    if when.awaits_of is not None and not definition.label:
        yield "waits for an event of another entity, but has none of its own.", "Wait in the handler: self.wait_for(…)."
    if when.repeats is not None and when.repeats.most is None and when.repeats.until is None and not definition.exits:
        yield (
            "is repeated without an end.",
            "Give most=… or until=…, or the class an exit; what goes on for ever starts_on = daily(…).",
        )
    if when.field_name and not definition.label:
        otherwise = "Count from the run's start."
        remedy = without_quotes(definition, when) or otherwise
        yield f"is anchored to the field {when.field_name!r}, but there is no entity.", remedy
    if when.predecessor_name:
        yield from _predecessor_problems(definition, declared)
        yield from _absent_feature(when)


def _absent_feature(when: When) -> Iterator[Problem]:
    if when.is_for_each and not rules().occurrences:
        yield (
            "has each_of(…), and the feature 'fan_out' is not in FEATURES.",
            "Name it there, or give another schedule.",
        )


def _predecessor_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    seen = {declared.name}
    following: Task[Any, ..., Any] | None = declared
    while following is not None and following.when is not None and (name := following.when.predecessor_name):
        if name not in definition.tasks:
            yield f"follows {name!r}, which is not a task of this timeline.", "Follow a task of the same class."
            return
        named = following.when.predecessor
        if isinstance(named, Task) and not any(
            vars(home).get(named.method_name) is named for home in definition.cls.__mro__
        ):
            yield f"follows the {name!r} of another timeline.", "Follow a task of the same class."
            return
        if name in seen:
            yield f"follows itself by way of {name!r}.", "Let the first of them count from the start or from a field."
            return
        seen.add(name)
        following = definition.tasks[name]
    if following is not None and following.when is None:
        yield f"follows {following.name!r}, which has no schedule.", "Give that one a schedule."


def _option_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    options = declared.options
    yield from _guard_problems(definition, declared)
    yield from beside_problems(definition, declared)
    for ask in rules().of_task:
        yield from ask(definition, declared)
    yield from _atomic_problems(options)
    yield from _bulk_problems(definition, options.bulk)
    if isinstance(options.retry, Retry):
        yield from options.retry.problems()
    else:
        yield f"has retry = {options.retry!r}.", "Use Retry(…)."
    expires = options.expires
    if expires is not None and not (isinstance(expires, timedelta) and timedelta(0) < expires <= MAX_EXPIRES):
        yield f"has expires = {expires!r}.", "Use a positive timedelta, a hundred years at most."
    timeout = options.timeout
    if timeout is not None and not (isinstance(timeout, timedelta) and timedelta(0) < timeout <= MAX_EXPIRES):
        yield f"has timeout = {timeout!r}.", "Use a positive timedelta, a hundred years at most."
    if type(options.priority) is not int or not -(2**15) <= options.priority < 2**15:
        yield f"has priority = {options.priority!r}.", "Use a whole number from -32768 to 32767."
    if not isinstance(options.queue, str) or not 0 < len(options.queue) <= MAX_NAME:
        yield f"has queue = {options.queue!r}.", f"Use text of 1 to {MAX_NAME} characters."
    if options.drift not in ("rest", "go on"):
        yield f"has drift = {options.drift!r}.", 'Use "rest" or "go on".'


def _atomic_problems(options: Options) -> Iterator[Problem]:
    atomic: object = options.atomic
    if not (isinstance(atomic, bool) or atomic in ("shared", "own")):
        yield f"has atomic = {atomic!r}.", 'Use True, False, "own" or "shared".'
    elif isinstance(atomic, str) and options.bulk is not None:
        how = "shares its transaction" if atomic == "shared" else "a transaction of its own"
        yield f"has bulk, and {how}.", "Give atomic=True: a call for many is one transaction as it is."


def _bulk_problems(definition: Definition, bulk: object) -> Iterator[Problem]:
    if bulk is None:
        return
    if not definition.label:
        yield "has bulk, but no entity to take many of.", "Remove bulk, or name the entity."
    if type(bulk) is not int or not 1 <= bulk <= MAX_BULK:
        yield f"has bulk = {bulk!r}.", f"Use a whole number from 1 to {MAX_BULK:,}."


def _guard_problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    for option, guard in declared.guards.items():
        if guard is not None and not (isinstance(guard, Q) or callable(guard)):
            yield f"has {option} = {guard!r}.", "Use a function of the entity or a Q of its model."
        if inspect.iscoroutinefunction(guard):
            yield f"has an async {option}.", "Use a plain function; it is asked in the worker's thread."
        if guard is not None and not definition.label:
            yield f"has {option}, but no entity to ask it of.", "Raise Cancel(reason) in the handler instead."
