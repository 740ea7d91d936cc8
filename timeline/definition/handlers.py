"""``@task``: makes a method of a timeline the handler of a task, and says when, whether and how it runs."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import cached_property, partial
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from django.db.models import Q
from django.utils.translation import gettext as _

from timeline.definition.names import check_method_once, first_paragraph, refuse_keywords
from timeline.definition.retry import Retry
from timeline.hooks import rules

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from timeline.definition.options import TaskOptions
    from timeline.timing import Approval, When, Window

SIDE_BY_SIDE: Final = 100  # Async handlers that one worker has under way at the same time.

Self_ = TypeVar("Self_")
Entity = TypeVar("Entity")
Params = ParamSpec("Params")
Result = TypeVar("Result")

Atomic = bool | Literal["shared", "own"]
Guard = Callable[[Any], object] | Q
Drift = Literal["rest", "go on"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What ``@task`` was told; ``task`` says what each means. ``more``: the options of features."""

    when: When | None = None
    only_if: Guard | None = None
    unless: Guard | None = None
    atomic: Atomic = True
    bulk: int | None = None
    retry: Retry = field(default_factory=Retry)
    expires: timedelta | None = None
    timeout: timedelta | None = None
    priority: int = 0
    queue: str = "default"
    drift: Drift = "rest"
    aside: bool = False
    spread: timedelta | None = None
    was: str = ""
    window: Window | None = None
    title: str | StrPromise = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Options of features are attributes like the others, with their defaults."""
        self.__dict__.update(dict(rules().options) | dict(self.more))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Task(Generic[Self_, Params, Result]):
    """A declared task. On the class it stands for the task (``after(expire, …)``); on an instance it is the method."""

    def __init__(self, method: Callable[Concatenate[Self_, Params], Result], options: Options) -> None:
        check_method_once(method)
        self.method = method
        self.options = options
        self.when = options.when  # Its time relative to an anchor; None: it gets rows only by ``schedule()``.
        self.method_name: str = getattr(method, "__name__", "")
        self.name: str = options.was or self.method_name  # That its rows have.
        self.is_async = inspect.iscoroutinefunction(method)
        until = getattr(getattr(options.when, "repeats", None), "until", None)
        self.guards: dict[str, Any] = {"until": until, "only_if": options.only_if, "unless": options.unless}
        # Whether it waits for an event; and for one of another entity: which one that is, it sees when it is about to run.
        self.waits = bool(getattr(options.when, "awaits", ()))
        self.looks_first = getattr(options.when, "awaits_of", None) is not None
        self.function_guards = [(option, guard) for option, guard in self.guards.items() if callable(guard)]
        self.query_guards = [(option, guard) for option, guard in self.guards.items() if isinstance(guard, Q)]
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Task[Self_, Params, Result]: ...
    @overload
    def __get__(self, instance: Self_, owner: type[Any]) -> Callable[Params, Result]: ...
    def __get__(
        self, instance: Self_ | None, owner: type[Any]
    ) -> Task[Self_, Params, Result] | Callable[Params, Result]:
        if instance is None:
            return self
        bound: Callable[Params, Result] = self.method.__get__(instance, owner)
        return bound

    def bound_to(self, context: Any) -> Callable[..., Any]:
        """The method of this context, called with the entity, if there is one."""
        method: Callable[..., Any] = getattr(context, self.method_name)
        return method

    def __repr__(self) -> str:
        return f"<task {self.name}: {self.describe() or 'on demand'}>"

    @property
    def title(self) -> str:
        """What people call it, in the language of the moment; empty: it has no title."""
        return " ".join(str(self.options.title).split())

    @cached_property
    def doc(self) -> str:
        """The first paragraph of its docstring, in one line; may be empty."""
        return first_paragraph(self.method)

    def describe(self) -> str:
        """When it is due, for people; empty without a schedule."""
        if self.when is None:
            return ""
        said, hours = self.when.describe(), self.options.window
        return said if hours is None else _("%(when)s, within %(hours)s") % {"when": said, "hours": hours.said}

    @property
    def is_repeated(self) -> bool:
        """Whether it comes again and again."""
        return getattr(self.when, "repeats", None) is not None

    @property
    def is_timer(self) -> bool:
        """Whether it is a timer of a machine, which has no handler of the host's."""
        return False

    @property
    def is_in_state(self) -> bool:
        """Whether it is bound to states of a machine."""
        return bool(getattr(self.when, "during", ()))

    @property
    def approval(self) -> Approval | None:
        """What a person is asked for before it runs; None: nothing."""
        return getattr(self.when, "approval", None)

    @property
    def has_savepoint(self) -> bool:
        """Whether its handler may have a savepoint in a transaction of many. What is broken off would undo all of that."""
        return self.options.atomic is True and self.options.timeout is None

    @property
    def is_plain(self) -> bool:
        """Whether its handler is entered once a task, and holds no transaction."""
        return not (self.options.atomic or self.is_async or self.options.bulk)

    @property
    def at_once(self) -> int | None:
        """How many of it are run together, where that is declared; None: as many as prove fast."""
        return SIDE_BY_SIDE if self.is_async else self.options.bulk

    @cached_property
    def awaits(self) -> dict[str, str]:
        """Columns of its rows that tell from the start which events make them due; none, where it waits for no event."""
        when = self.options.when
        if when is None or not self.waits or self.looks_first:
            return {}
        return {"awaits": " ".join(when.awaits), "awaits_key": when.awaits_key}

    @cached_property
    def fingerprint(self) -> str:
        """Changes when its schedule changes: 16 hex digits, kept on each row."""
        when = self.options.when
        parts = ["", "", ""] if when is None else [when.anchor, repr(when.offset), repr(self.options.expires)]
        if when is not None and when.repeats is not None:
            parts += [repr(when.repeats.interval), repr(when.repeats.most)]
        if when is not None and when.backoff is not None:
            parts.append(repr(when.backoff.delays))
        if (hours := self.options.window) is not None:
            parts += [hours.said, hours.outside, str(hours.zone)]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]


class Decorator(Protocol):
    """Takes any method of a timeline."""

    def __call__(self, method: Callable[Concatenate[Self_, Params], Result], /) -> Task[Self_, Params, Result]: ...


class EntityDecorator(Protocol[Entity]):
    """Takes a method of a timeline whose entity is the guard's."""

    def __call__(self, method: Callable[[Self_, Entity], Result], /) -> Task[Self_, [Entity], Result]: ...


class BulkDecorator(Protocol[Entity]):
    """Takes a method of a timeline that is called for many entities, the guard's."""

    def __call__(self, method: Callable[[Self_, list[Entity]], Result], /) -> Task[Self_, [list[Entity]], Result]: ...


@overload
def task(
    when: When | None = ...,
    *,
    only_if: Q | None = ...,
    unless: Q | None = ...,
    bulk: int | None = ...,
    **options: Unpack[TaskOptions],
) -> Decorator: ...
@overload
def task(
    when: When | None = ...,
    *,
    only_if: Callable[[Entity], object],
    unless: Callable[[Entity], object] | Q | None = ...,
    **options: Unpack[TaskOptions],
) -> EntityDecorator[Entity]: ...
@overload
def task(
    when: When | None = ...,
    *,
    only_if: Q | None = ...,
    unless: Callable[[Entity], object],
    **options: Unpack[TaskOptions],
) -> EntityDecorator[Entity]: ...
@overload
def task(
    when: When | None = ...,
    *,
    only_if: Callable[[Entity], object],
    unless: Callable[[Entity], object] | Q | None = ...,
    bulk: int,
    **options: Unpack[TaskOptions],
) -> BulkDecorator[Entity]: ...
@overload
def task(
    when: When | None = ...,
    *,
    only_if: Q | None = ...,
    unless: Callable[[Entity], object],
    bulk: int,
    **options: Unpack[TaskOptions],
) -> BulkDecorator[Entity]: ...
def task(
    when: When | None = None,
    *,
    only_if: Guard | None = None,
    unless: Guard | None = None,
    bulk: int | None = None,
    **options: Any,
) -> Any:
    """
    Declare a task of a timeline. Options of features (``limit``, ``park_above`` …) are said in ``definition/options.py``.

    Args:
        when: ``after``, ``before``, ``at``, ``on``, ``every``, ``wait_for`` or ``each_of``. Left out: the task gets rows
            only by ``schedule()``.
        only_if: Checked when it is about to run: if false, the task is cancelled (``guard``). A function of the entity, or
            a ``Q`` of its model. People read the function's name as the reason.
        unless: The opposite condition: if true, the task is cancelled.
        atomic: Whether handler, follow-ups and outcome share one transaction. On PostgreSQL, other tasks may share it, each
            with a savepoint; if all of it is undone, each task is entered again in a transaction of its own. ``"own"``: it
            never shares its transaction. ``"shared"``, for handlers that only write to this database and seldom fail:
            without savepoints, so it is the fastest, but a failure undoes all tasks of the transaction. False for handlers
            that call the outside, and for those declared with ``async def``, which run side by side.
        bulk: Call the handler once for up to this many entities (1 to 1,000). It takes a list of them, and finds the context of
            each in ``self.tasks[entity]``. It may return a mapping from entity to result, or to the exception of its failure.
        retry: How it is tried again; left out: ``Retry()``.
        expires: How long after its nominal time it is too late to run (then cancelled, ``expired``); a hundred years at
            most. None: never.
        timeout: How long its handler may take; with ``bulk``, the whole call. After that the attempt fails (``timeout``), and
            the handler is interrupted if possible. None: as long as it likes.
        priority: Among due tasks, smaller numbers run first; -32,768 to 32,767.
        queue: Name of its queue.
        drift: What a half-done task does if the code has changed, and calls the steps that are done with other arguments or in
            another order. ``"rest"``: until somebody decides. ``"go on"``: for a handler that branches on something that
            changes by itself.
        aside: Whether its run may end without it: then it is cancelled (``run_ended``). For reminders and alarms.
        spread: Time after its nominal time within which it becomes due, each entity at a moment of its own, always the same;
            30 days at most. For tasks that would be due for everybody at nine. None: at its nominal time.
        was: The name that the method had before; its rows, old and new, keep that name. Empty: its own.
        window: Hours in which it may be due, as ``window`` makes them, also when it is tried again. None: at any hour.
        title: What people call it, in the admin, in ``explain`` and in the API; may be lazy, as ``gettext_lazy`` gives it.
            Empty: they read its key.

    Raises:
        DefinitionError: for any other keyword, as soon as the method is decorated.
    """
    own = {each.name for each in fields(Options)} - {"more"}
    more = dict(rules().options)
    if unknown := {name: value for name, value in options.items() if name not in own | more.keys()}:
        return partial(refuse_keywords, decorator="@task", given=unknown, known=sorted(own | more.keys()))
    if options.get("retry", True) is None:
        del options["retry"]
    told = {name: options.pop(name) for name in more if name in options}
    return partial(Task, options=Options(when=when, only_if=only_if, unless=unless, bulk=bulk, more=told, **options))
