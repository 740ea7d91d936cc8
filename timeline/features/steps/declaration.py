"""``@step``: makes a method of a timeline a step of its handlers. What a step has done is not done again."""

from __future__ import annotations

import hashlib
import inspect
import json
from base64 import b85encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property, partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from django.db.models import Model
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from timeline.definition.handlers import Task
from timeline.definition.names import check_method_once, refuse_keywords
from timeline.exceptions import InvalidInput
from timeline.payloads import check_text

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.definition.retry import Retry


Self_ = TypeVar("Self_")
Params = ParamSpec("Params")
Result = TypeVar("Result")

MAX_STEP_KEY: Final = 90  # With the name of the method, and a "#" between them, it fits into 150.

MAX_NOTE: Final = 200
MAX_COUNT: Final = 2**63 - 1
# What JSON has not, and is told apart by its text.
_PLAIN: Final = (Decimal, date, time, timedelta, UUID, Enum, bytes)


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """What ``@step`` was told. See ``step`` for each."""

    atomic: bool = True
    retry: Retry | None = None
    was: str = ""
    once: bool = False


class Runner(Protocol):
    """Takes the steps of one attempt: does those that are to be done, and answers for those that are done."""

    def take(self, step: Step[Any, ..., Any], key: str, given: dict[str, Any], body: Callable[[], Any]) -> Any:
        """
        Do a step, or answer for it; ``key`` tells several calls apart, empty: the only one. ``body`` calls the method. Gives
        what the method returned, as JSON has it. Of an ``async def``: a coroutine that gives it.
        """

    def each(
        self, step: Step[Any, ..., Any], key: str, rows: QuerySet[Any], size: int, body: Callable[[Any], Any]
    ) -> Any:
        """
        Do a step for each batch, ``size`` rows at a time, or answer for those that are done; ``key`` as in ``take``. Gives the
        sums of what it made. Of an ``async def``: a coroutine that gives them.
        """


class Step(Generic[Self_, Params, Result]):
    """A declared step. On the class it stands for the step; on an instance it is called as the method would be."""

    def __init__(self, method: Callable[Concatenate[Self_, Params], Result], options: StepOptions) -> None:
        check_method_once(method)
        self.method = method
        self.options = options
        self.name: str = getattr(method, "__name__", "")
        self.is_async = inspect.iscoroutinefunction(method)
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Step[Self_, Params, Result]: ...
    @overload
    def __get__(self, instance: Self_, owner: type[Any]) -> BoundStep[Params, Result]: ...
    def __get__(
        self, instance: Self_ | None, owner: type[Any]
    ) -> Step[Self_, Params, Result] | BoundStep[Params, Result]:
        return self if instance is None else BoundStep(self, instance)

    def __repr__(self) -> str:
        return f"<step {self.name}>"

    @cached_property
    def signature(self) -> inspect.Signature:
        """Of its method, ``self`` included."""
        return inspect.signature(self.method)

    @cached_property
    def _positions(self) -> list[str] | None:
        """Names of the parameters behind ``self``, if each can be given by its position; else None."""
        known = list(self.signature.parameters.values())[1:]
        return [one.name for one in known] if all(one.kind is one.POSITIONAL_OR_KEYWORD for one in known) else None

    def given(self, timeline: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """What a call gives its method, by name, without ``self``; ``TypeError`` if it cannot be called so."""
        names = self._positions
        if names is not None and len(args) == len(names) and not kwargs:  # ``bind`` would take ten times as long.
            return dict(zip(names, args, strict=True))
        bound = self.signature.bind(timeline, *args, **kwargs).arguments
        return dict(list(bound.items())[1:])

    @property
    def names(self) -> frozenset[str]:
        return frozenset({self.name, self.options.was or self.name})


@dataclass(frozen=True, slots=True)
class BoundStep(Generic[Params, Result]):
    """A step of one execution. Call it as the method. In a unit test, where nothing runs, the method itself is called."""

    step: Step[Any, Params, Result]
    timeline: Any
    key: str = ""

    def __call__(self, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Do it, unless an earlier attempt has done it: then give what it returned, as JSON has it."""
        body = partial(self.step.method, self.timeline, *args, **kwargs)
        runner: Runner | None = self.timeline._step_runner
        if runner is None:
            return body()
        given = self.step.given(self.timeline, *args, **kwargs)
        result: Result = runner.take(self.step, self.key, given, body)
        return result

    def keyed(self, key: str) -> BoundStep[Params, Result]:
        """The same step under a key of its own, where one handler takes it several times: ``self.upload.keyed("de")(path)``."""
        return BoundStep(self.step, self.timeline, str(key))


class StepDecorator(Protocol):
    """Takes any method of a timeline."""

    def __call__(self, method: Callable[Concatenate[Self_, Params], Result], /) -> Step[Self_, Params, Result]: ...


@overload
def step(method: Callable[Concatenate[Self_, Params], Result], /) -> Step[Self_, Params, Result]: ...
@overload
def step(*, atomic: bool = ..., retry: Retry | None = ..., was: str = ..., once: bool = ...) -> StepDecorator: ...
def step(
    method: Any = None,
    /,
    *,
    atomic: bool = True,
    retry: Retry | None = None,
    was: str = "",
    once: bool = False,
    **unknown: Any,
) -> Any:
    """
    Declare a step: a method that handlers call, and that is skipped once it is done.

    Its return value is kept (JSON, 64 KiB), under the task's idempotency key and the step's name. A later attempt at the same
    task finds it there and goes on after it. So does the next revision, after a move or a redrive of a task that has not
    completed. Only handlers declared with ``atomic=False`` can call steps.

    Args:
        atomic: Whether its writes to this database and its record are one transaction: then they happen once. False for a
            step that calls the outside: it may be done again if its worker dies before it is recorded; pass
            ``self.step.idempotency_key`` to the service that it calls. For a step declared with ``async def``, False.
        retry: How the task is tried again when this step fails; left out: as the task says. Each step has the whole budget:
            failures are counted anew once a step is done.
        was: The name it had before it was renamed: records under that name count.
        once: For services that know no idempotency keys: it is never called twice. Its beginning is recorded first. If its
            end is not recorded, nobody knows whether it happened: the task rests until a person has decided. Raise
            ``RetryAfter`` in it if it is known that nothing happened. Needs ``atomic=False``.

    Raises:
        DefinitionError: for any other keyword, as soon as the method is decorated.
    """
    if unknown:
        known = [option.name for option in fields(StepOptions)]
        return partial(refuse_keywords, decorator="@step", given=unknown, known=known)
    options = StepOptions(atomic=atomic, retry=retry, was=was, once=once)
    return Step(method, options) if method is not None else partial(Step, options=options)


class Teller(Protocol):
    """Tells people how far the handler of one attempt is."""

    def tell(self, done: int, total: int | None, note: str) -> None:
        """Record it, unless that was done a moment ago."""

    async def atell(self, done: int, total: int | None, note: str) -> None:
        """The same, for a handler declared with ``async def``."""


def check_progress(done: object, total: object, note: object) -> None:
    """Refuse what is no progress: ``InvalidInput``, naming ``done``, ``total`` or ``note``."""
    for name, number in (("done", done), ("total", total)):
        if name == "total" and number is None:
            continue
        if type(number) is not int or not 0 <= number <= MAX_COUNT:
            problem, remedy = _("is %(number)s."), _("Give a whole number, 0 or more.")
            raise InvalidInput(name, problem, remedy, number=f"{number!a:.60}")
    check_text("note", str(note) if isinstance(note, Promise) else note, MAX_NOTE)


def digest_of(given: dict[str, Any]) -> str:
    """16 hex digits of what a step is given, by name: of entities their keys. What has no text of its own is not told apart."""
    try:
        text = _TEXT.encode(given)
    except (TypeError, ValueError, RecursionError):
        text = ""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def _told_apart(value: object) -> object:
    if isinstance(value, Model):
        return [value._meta.label_lower, str(value.pk)]
    return [type(value).__name__, str(value)] if isinstance(value, _PLAIN) else None


_TEXT: Final = json.JSONEncoder(default=_told_apart)  # One for all: a call of ``json.dumps`` makes one for itself.


def code_of(cls: type) -> str:
    """16 hex digits of the code of a timeline, but for its steps: what decides which steps are taken, and in which order."""
    found = []
    for home in cls.__mro__:
        if home is object or home.__module__.partition(".")[0] == "timeline":
            continue
        for name, value in vars(home).items():
            if isinstance(value, str | int | float) and not name.startswith("__"):
                found.append(repr((name, value)))
            elif not isinstance(value, Step):
                found += [repr((name, _as_written(function))) for function in _functions(value, set())]
    return hashlib.sha256("\n".join(sorted(found)).encode(errors="replace")).hexdigest()[:16]


def kept(code: str) -> str:
    """``code_of`` in 5 characters, as much as its first 8 hex digits say, since it is kept many times."""
    return b85encode(bytes.fromhex(code[:8])).decode()


def _functions(value: Any, seen: set[int]) -> Iterator[FunctionType]:
    """A function, and those that it wraps or that are wrapped around it: by a decorator, a property, a task."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Task):
        yield from _functions(value.method, seen)
    elif isinstance(value, FunctionType):
        yield value
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        for inner in [getattr(value, "__wrapped__", None), *cells]:
            if isinstance(inner, FunctionType):
                yield from _functions(inner, seen)
    else:
        for attribute in ("__func__", "fget", "fset"):
            yield from _functions(getattr(value, attribute, None), seen)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _as_written(function: FunctionType) -> tuple[object, ...]:
    return (_code(function.__code__), _constant(function.__defaults__), repr(function.__kwdefaults__))


def _code(code: CodeType) -> tuple[object, ...]:
    return (code.co_code.hex(), [_constant(known) for known in code.co_consts], code.co_names)


def _constant(value: object) -> object:
    """A constant, the same in each process: sets have another order in each."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    if isinstance(value, tuple):
        return [_constant(item) for item in value]
    return (
        repr(value) if value is None or isinstance(value, str | bytes | int | float | complex) else type(value).__name__
    )
