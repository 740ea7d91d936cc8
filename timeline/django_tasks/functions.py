"""
The functions that Django has made tasks of in this process, and the timelines that are made of them: one for each backend.

A row has the key of its function, never a path that is imported. So nothing runs but what this process has imported by itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import iscoroutinefunction
from threading import RLock
from types import new_class
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from timeline.definition import Definition, Task, Timeline
from timeline.definition.check_timelines import check_shape
from timeline.definition.handlers import Options
from timeline.definition.names import LONGEST_TITLE, MAX_NAME, is_name
from timeline.django_tasks.framework import InvalidTask, task_backends
from timeline.django_tasks.options import wrong
from timeline.exceptions import DefinitionError
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.django_tasks.backend import TimelineBackend

NAME: Final = "django_tasks"
_DIGITS: Final = 8
_PLAIN: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)*", re.ASCII)


class Functions(Timeline, abstract=True):
    """What the timelines that are made of functions have in common."""

    @classmethod
    def _brought_back_by(cls) -> str:
        return _(
            "Let this process import the function: from a module tasks of an installed app, or from one that "
            "OPTIONS['modules'] in TASKS names. Nothing is imported because a row says so."
        )


class FunctionTask(Task[Any, ..., Any]):
    """A function that Django made a task of, in one queue, as a task of a timeline."""

    def __init__(self, name: str, made: Any, options: Options) -> None:
        handler = _handler_of(made)
        handler.__name__, handler.__doc__ = name, made.func.__doc__
        super().__init__(handler, options)
        self.made = made

    def bound_to(self, context: Any) -> Callable[..., Any]:
        """The handler, which is no method of the class."""
        return partial(self.method, context)


def _handler_of(made: Any) -> Callable[[Any], Any]:
    """What enters a function. It needs the models, which are not there yet while functions are decorated."""

    def handler(context: Any) -> Any:
        from timeline.django_tasks.running import run

        return run(context, made)

    async def async_handler(context: Any) -> Any:
        from timeline.django_tasks.running import run_async

        return await run_async(context, made)

    return async_handler if iscoroutinefunction(made.func) else handler


@dataclass(frozen=True)
class Kinds:
    """The kinds of a backend, by path and queue: each with the key that its rows have."""

    cls: type[Functions]
    made_for: tuple[object, ...]
    keys: dict[tuple[str, str], str]


_functions: Final[dict[str, Any]] = {}  # Path → what Django made of the function when it was decorated.
_kinds: Final[dict[str, Kinds]] = {}  # Alias → kinds.
_classes: Final[dict[str, type[Functions]]] = {}
_lock: Final = RLock()


def know(made: Any) -> None:
    """Know a function, if it is new, or has taken the place of one of its path: after a reload."""
    known = _functions.get(made.module_path)
    if known is None or known.func is not made.func:
        with _lock:
            _functions[made.module_path] = made
            _kinds.clear()
            for alias in _classes:  # None before the apps are ready: then all are declared together.
                if alias in task_backends.settings:
                    kinds_of(task_backends[alias])


def key_of(made: Any, backend: TimelineBackend) -> str:
    """The key of rows of a task; ``InvalidTask`` if no worker would know it."""
    know(made)
    key = kinds_of(backend).keys.get((made.module_path, made.queue_name))
    if key is None:
        said = f"Queue '{made.queue_name}' is not valid for backend: name it in QUEUES, so that workers know it."
        raise InvalidTask(said)
    return key


def kinds_of(backend: TimelineBackend) -> Kinds:
    """The kinds of a backend as it is set up now, registered."""
    known = _kinds.get(backend.alias)
    wanted = (sorted(backend.queues), backend.declared)
    if known is not None and known.made_for == wanted and registry.about(known.cls.definition.name, "") is not None:
        return known
    with _lock:
        found = _kinds[backend.alias] = _declare(backend, wanted)
        return found


def function_of(task_key: str) -> tuple[str, Any] | None:
    """Alias of the backend, and what Django made of the function; None: this process does not know the key."""
    for alias, cls in _classes.items():
        definition = cls.definition
        if task_key.startswith(f"{definition.name}."):
            declared = definition.tasks.get(task_key.partition(".")[2])
            return (alias, declared.made) if isinstance(declared, FunctionTask) else None
    return None


def _declare(backend: TimelineBackend, wanted: tuple[object, ...]) -> Kinds:
    cls = _class_of(backend.alias)
    before = cls.definition.tasks if "definition" in vars(cls) else {}
    name, keys, tasks = _timeline_of(backend.alias), dict[tuple[str, str], str](), dict[str, Task[Any, ..., Any]]()
    for path, made, queue in _wanted(backend):
        called = name_of(path, "" if queue == made.queue_name else queue)
        options = _options_of(backend, path, made, queue)
        if called in tasks:
            raise InvalidTask(f"{path} cannot be told apart from another function: rename one of them.")
        known = before.get(called)
        if not isinstance(known, FunctionTask) or known.made is not made or known.options != options:
            known = FunctionTask(called, made, options)
        tasks[called] = known
        keys[path, queue] = f"{name}.{called}"
    new = {called: task for called, task in tasks.items() if before.get(called) is not task}
    cls.definition = Definition(
        cls=cls, name=name, label="", starts_on=(), exits={}, tasks=tasks, steps={}, shadow=False
    )
    if new:
        try:
            check_shape(replace(cls.definition, tasks=new))
        except DefinitionError as error:
            raise wrong(backend.alias, f"{error.problem} {error.remedy}") from error
    if tasks:
        registry.register(cls)
    return Kinds(cls, wanted, keys)


def _wanted(backend: TimelineBackend) -> Iterator[tuple[str, Any, str]]:
    """Each function in its own queue, and in each other queue that the backend has: ``using()`` may name that."""
    for path, made in _functions.items():
        for queue in [made.queue_name, *sorted(backend.queues - {made.queue_name})]:
            yield path, made, queue


def _options_of(backend: TimelineBackend, path: str, made: Any, queue: str) -> Options:
    title = path if queue == made.queue_name else f"{path} ({queue})"
    atomic = False if iscoroutinefunction(made.func) else backend.declared.atomic
    return replace(backend.declared, atomic=atomic, priority=-made.priority, queue=queue, title=title[-LONGEST_TITLE:])


def _class_of(alias: str) -> type[Functions]:
    if alias not in _classes:
        own = {"__module__": __name__, "name": _timeline_of(alias)}
        _classes[alias] = new_class("DjangoTasks", (Functions,), {"abstract": True}, lambda given: given.update(own))
    return _classes[alias]


def _timeline_of(alias: str) -> str:
    if alias == "default":
        return NAME
    name = f"{NAME}_{alias}"
    return name if is_name(name) else f"{NAME}_{_digits(alias)}"


def name_of(path: str, queue: str = "") -> str:
    """
    The name of a function as a task: its path with ``__`` for each dot, and ``___`` before the queue, if it is not its own. If
    that is too long, or might be the name of another: the end of it, and digits made of the whole.
    """
    parts = [path, queue] if queue else [path]
    name = "___".join(part.replace(".", "__") for part in parts)
    if len(name) <= MAX_NAME and all(map(_PLAIN.fullmatch, parts)):
        return name
    end = re.sub(r"[^a-z0-9_]", "_", path.rpartition(".")[2].lower()).lstrip("_0123456789") or "task"
    return f"{end[: MAX_NAME - _DIGITS - 1]}_{_digits('___'.join(parts))}"


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
