"""The known timelines: from a stored task key to its handler, from an event to its timelines. The only way to this code."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from timeline.definition import AfterRun, Created, Definition, Task, Timeline
from timeline.definition.model_fit import check_model, led_to, meant_model
from timeline.exceptions import DefinitionError, UnknownTask, UnknownTimeline
from timeline.hooks import rules
from timeline.signals import registered
from timeline.timing import When

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import Model

logger = logging.getLogger("timeline")


class Registry:
    """The declared timelines by name. The process has one, ``registry``."""

    def __init__(self) -> None:
        self._definitions: dict[str, Definition] = {}
        self._aside: list[dict[str, Definition]] = []  # Definitions that ``replaced`` has put aside.

    def __iter__(self) -> Iterator[Definition]:
        return iter(list(self._definitions.values()))

    def everywhere(self) -> Iterator[Definition]:
        """All definitions, also those that ``replaced`` has put aside."""
        for definitions in (self._definitions, *self._aside):
            yield from list(definitions.values())

    @property
    def is_replaced(self) -> bool:
        """Whether ``replaced`` has put definitions aside."""
        return bool(self._aside)

    def register(self, cls: type[Timeline]) -> type[Timeline]:
        """Add a timeline; ``DefinitionError`` if its name is taken, or it does not fit the entity's model."""
        definition = vars(cls).get("definition")
        if not isinstance(definition, Definition):
            raise DefinitionError(cls.__name__, "is abstract.", "Register the classes that inherit from it.")
        known = self._definitions.get(definition.name)
        if known is not None and not _is_declared_again(known.cls, cls):
            problem = f"has the name {definition.name!r}, as {known.cls.__module__}.{known.cls.__name__} has."
            raise DefinitionError(cls.__name__, problem, "Give one of them another name.")
        if definition.label:
            try:
                model = apps.get_model(definition.label)
            except LookupError:
                problem = f"has entity = {cls.entity!r}, which is no installed model."
                raise DefinitionError(cls.__name__, problem, meant_model(definition.label)) from None
            if model._meta.swapped:
                problem = f"has entity = {cls.entity!r}, for which {model._meta.swapped!r} stands in here."
                raise DefinitionError(cls.__name__, problem, f"Name settings.{model._meta.swappable}.")
            if model._meta.proxy:
                concrete = model._meta.concrete_model._meta.label
                raise DefinitionError(cls.__name__, f"has a proxy as entity, {cls.entity!r}.", f"Name {concrete!r}.")
            check_model(definition, model)
            self._check_others(definition, model)
        self._definitions[definition.name] = definition
        registered.send(self, label=definition.label)
        return cls

    def _check_others(self, definition: Definition, model: type[Model]) -> None:
        others = [(known, apps.get_model(known.label)) for known in self if known.label and known.mirror]
        for problem, remedy in chain.from_iterable(ask(definition, model, others) for ask in rules().of_others):
            raise DefinitionError(definition.cls.__name__, problem, remedy)

    def discover(self) -> None:
        """Import ``timelines`` of each installed app and register the classes declared there, or in its submodules."""
        autodiscover_modules("timelines")
        homes = tuple(name for config in apps.get_app_configs() if (name := f"{config.name}.timelines") in sys.modules)
        found: dict[Any, type[Timeline]] = {}
        for cls in _subclasses(Timeline):
            if "definition" in vars(cls) and any(f"{cls.__module__}.".startswith(f"{home}.") for home in homes):
                is_local = "<locals>" in cls.__qualname__
                found[cls if is_local else (cls.__module__, cls.__qualname__)] = cls  # The last one, after a reload.
        for cls in found.values():
            self.register(cls)

    @contextmanager
    def replaced(self, *classes: type[Timeline]) -> Iterator[None]:
        """Let only these timelines be known within the block. For tests."""
        before = self._definitions
        fitting = {known.cls: known for known in before.values()}
        taken = {fitting[cls].name: fitting[cls] for cls in classes if cls in fitting}
        all_taken = len(taken) == len(set(classes))  # Then they were checked with their models, and with each other.
        self._aside.append(before)
        self._definitions = taken if all_taken else {}
        try:
            if not all_taken:
                for cls in classes:
                    self.register(cls)
            yield
        finally:
            self._definitions = self._aside.pop()

    def timeline(self, timeline: str | type[Timeline]) -> Definition:
        """A definition by its name or class; ``UnknownTimeline`` if there is none."""
        if isinstance(timeline, type) and issubclass(timeline, Timeline) and hasattr(timeline, "definition"):
            timeline = timeline.definition.name
        if not isinstance(timeline, str) or timeline not in self._definitions:
            raise UnknownTimeline(str(timeline), sorted(self._definitions))
        return self._definitions[timeline]

    def about(self, timeline: str, label: str) -> Definition | None:
        """The definition of a run; None: not known here, or about another model now, as after a rename."""
        definition = self._definitions.get(timeline)
        return definition if definition is not None and definition.label == label else None

    def task(self, task_key: str) -> tuple[Definition, Task[Any, ..., Any]]:
        """The definition and the task of a stored key; ``UnknownTask`` if there is none."""
        timeline, _dot, name = task_key.partition(".")
        definition = self._definitions.get(timeline)
        if definition is None or name not in definition.tasks:
            raise UnknownTask(task_key, self.task_keys())
        return definition, definition.tasks[name]

    def told(self, task_key: str) -> tuple[str, str]:
        """
        A task for people: title and first paragraph of its docstring; either may be empty, both are for an unknown task. A
        timer is called as its event.
        """
        timeline, _dot, name = task_key.partition("#")[0].partition(".")
        definition = self._definitions.get(timeline)
        task = definition.tasks.get(name) if definition is not None else None
        if definition is None or task is None:
            return ("" if definition is None else definition.cls._title_of(name)), ""
        return (definition.title_of(task.when.tells), "") if task.is_timer and task.when else (task.title, task.doc)

    def titled(self, task_key: str) -> str:
        """A task for people: its title, followed by its key; without a title, only the key."""
        title = self.told(task_key)[0]
        return f"{title} ({task_key})" if title else task_key

    def title_in(self, timeline: str, name: str) -> str:
        """What people call an event, state, exit or condition of a timeline; empty: it has no title, or is not known here."""
        definition = self._definitions.get(timeline)
        return definition.title_of(name) if definition is not None else ""

    def titled_in(self, timeline: str, name: str) -> str:
        """The same, followed by its name; without a title, only the name."""
        definition = self._definitions.get(timeline)
        return definition.titled(name) if definition is not None else name

    def title_of_event(self, event: str, label: str) -> str:
        """What people call an event of these entities: as the first timeline about them does that has a title for it."""
        titles = (known.title_of(event) for known in self if known.label == label and event in known.titles)
        return next(titles, "")

    def brought_back_by(self, task_key: str) -> str:
        """What lets this process know the task again, where its timeline says that; empty: the code has to declare it."""
        definition = self._definitions.get(task_key.partition(".")[0])
        return "" if definition is None else definition.cls._brought_back_by()

    def elsewhere(self) -> list[str]:
        """How the keys of tasks begin that workers of others run. No worker of ours takes one: ``task_keys`` has none."""
        return sorted(f"{name}." for name, known in self._definitions.items() if known.cls._elsewhere)

    def is_elsewhere(self, task_key: str) -> bool:
        """Whether workers of others run tasks of this key."""
        definition = self._definitions.get(task_key.partition(".")[0])
        return definition is not None and definition.cls._elsewhere

    def when_lost(self, task_key: str, write: Any, *, now: datetime) -> Any:
        """What the timeline of a task makes of a lost attempt, given what the rescuer would write; that, if it cannot say."""
        definition = self._definitions.get(task_key.partition(".")[0])
        try:
            return write if definition is None else definition.cls._when_lost(write, now=now)
        except Exception:
            logger.exception("What becomes of a lost attempt of %s cannot be said; it is as of others.", task_key)
            return write

    def in_shadow(self, task_key: str) -> bool:
        """Whether this process would not enter the handler of this key, since its timeline is in shadow."""
        definition = self._definitions.get(task_key.partition(".")[0])
        return definition is not None and definition.shadow

    def is_in_state(self, task_key: str) -> bool:
        """Whether the task is bound to states of a machine, as far as this process knows."""
        timeline, _dot, name = task_key.partition(".")
        definition = self._definitions.get(timeline)
        return definition is not None and name in definition.in_states

    def task_keys(self, queue: str | None = None) -> list[str]:
        """All known task keys, sorted; with a queue, those that are declared for it."""
        return sorted(
            definition.task_key(name)
            for definition in self
            for name, task in definition.tasks.items()
            if queue is None or task.options.queue == queue
        )

    def knows(self, label: str) -> bool:
        """Whether any timeline is about this model."""
        return label in [known.label for known in self]  # A list: this is called for each of many entities.

    def started_by_creation(self, label: str) -> list[Definition]:
        """Timelines about this model that start when a row is inserted."""
        return [known for known in self if known.label == label and Created() in known.starts_on]

    def started_after(self, timeline: str, label: str) -> list[tuple[Definition, AfterRun]]:
        """Timelines about this model that start when a run of another one ends, each with its ``AfterRun``."""
        return [
            (known, start)
            for known in self
            if known.label == label
            for start in known.starts_on
            if isinstance(start, AfterRun) and start.definition and start.definition.name == timeline
        ]

    def machines(self, event: str = "") -> list[Definition]:
        """All machines; with an event, those that have it in their tables."""
        machines = [known for known in self._definitions.values() if known.machine is not None]
        return [known for known in machines if known.machine and event in known.machine.events] if event else machines

    def approvals(self, event: str, labels: Set[str]) -> list[tuple[Definition, str]]:
        """Tasks about one of these models to which the event is a yes or a no: their definition and their key."""
        return [
            (known, key)
            for known in self
            if known.label in labels
            for key, when in known.approvals.items()
            if event in when.awaits
        ]

    def is_typed(self, event: str) -> bool:
        """Whether a machine declares a type for the payload of the event."""
        return any(event in known.payloads for known in self._definitions.values())

    def ended_by(self, event: str, label: str) -> list[Definition]:
        """Timelines about this model whose runs the event ends."""
        return [known for known in self if known.label == label and event in known.exits]

    def events(self) -> dict[str, set[str]]:
        """Label → events that start, move or end runs, or that tasks wait for; also of timelines put aside by ``replaced``."""
        found: dict[str, set[str]] = {}
        for known in self.everywhere():
            starts = {start for start in known.starts_on if isinstance(start, str)}
            moves = known.machine.events if known.machine is not None else ()
            found.setdefault(known.label, set()).update(starts, known.exits, moves)
            for when in (task.when for task in known.tasks.values() if task.when):
                if (label := _whose_label(known, when)) is not None:
                    found.setdefault(label, set()).update(when.awaits)
            for label, names in chain.from_iterable(ask(known) for ask in rules().events):
                found.setdefault(label, set()).update(names)
        return found

    def labels_following(self, fields: Set[str]) -> set[str]:
        """Labels of models with a timeline whose times or waits follow one of these fields."""
        return {known.label for known in self if (known.followed_fields | known.awaited_fields) & fields}

    def following(self, label: str) -> list[Definition]:
        """Timelines about this model whose times or waits follow fields of it."""
        return [known for known in self if known.label == label and (known.followed_fields or known.awaited_fields)]


def _whose_label(definition: Definition, when: When) -> str | None:
    """Label of the entities for whose events a task waits; None: only a function of the task knows."""
    if when.awaits_of is None:
        return definition.label
    if not isinstance(when.awaits_of, str):
        return None
    model = led_to(apps.get_model(definition.label), when.awaits_of)
    return model._meta.concrete_model._meta.label_lower if model is not None and model._meta.concrete_model else None


def _is_declared_again(known: type[Timeline], cls: type[Timeline]) -> bool:
    """Whether a class is known, or has taken the place of one that is: a reload, a notebook or a doctest declared it again."""
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        return False
    return known is cls or getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls


def _subclasses(cls: type[Timeline]) -> Iterator[type[Timeline]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


registry = Registry()
