"""``@step``: makes a method of a timeline a step of its handlers. What a step has done is not done again."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.definition.retrying import Retry

Self_ = TypeVar("Self_")
Params = ParamSpec("Params")
Result = TypeVar("Result")

MAX_STEP_KEY: Final = 90  # With the name of the method, and a "#" between them, it fits into 150.


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """
    What ``@step`` was told. See ``step`` for each.
    """

    atomic: bool = True
    retry: Retry | None = None
    was: str = ""
    once: bool = False


class Runner(Protocol):
    """Takes the steps of one attempt: does those that are to be done, and answers for those that are done."""

    def take(self, step: Step[Any, ..., Any], key: str, given: dict[str, Any], body: Callable[[], Any]) -> Any:
        """
        Do a step, or answer for it.

        Args:
            step: As declared.
            key: Tells several calls of it apart; empty: the only one.
            given: What it is called with, by name.
            body: Calls the method.

        Returns:
            What the method returned, as JSON has it. Of an ``async def``: a coroutine that gives it.
        """

    def each(
        self, step: Step[Any, ..., Any], key: str, rows: QuerySet[Any], size: int, body: Callable[[Any], Any]
    ) -> Any:
        """
        Do a step for each batch, or answer for those that are done.

        Args:
            step: As declared.
            key: Tells several calls of it apart; empty: the only one.
            rows, size: What it is about, and how many at a time.
            body: Calls the method with the rows of a batch.

        Returns:
            The sums of what it made. Of an ``async def``: a coroutine that gives them.
        """


class Step(Generic[Self_, Params, Result]):
    """A declared step. On the class it stands for the step; on an instance it is called as the method would be."""

    def __init__(self, method: Callable[Concatenate[Self_, Params], Result], options: StepOptions) -> None:
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
        """
        What a call gives its method, by name, without ``self``.

        Raises:
            TypeError: if its method cannot be called so.
        """
        names = self._positions
        if names is not None and len(args) == len(names) and not kwargs:  # ``bind`` would take ten times as long.
            return dict(zip(names, args, strict=True))
        bound = self.signature.bind(timeline, *args, **kwargs).arguments
        return dict(list(bound.items())[1:])

    @property
    def names(self) -> frozenset[str]:
        """What it is called, and what it was."""
        return frozenset({self.name, self.options.was or self.name})


@dataclass(frozen=True, slots=True)
class BoundStep(Generic[Params, Result]):
    """
    A step of one execution. Call it as the method. In a unit test, where nothing runs, the method itself is called.

    Args:
        step: As declared.
        timeline: The context of the execution.
        key: Tells several calls of it apart.
    """

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
    method: Any = None, /, *, atomic: bool = True, retry: Retry | None = None, was: str = "", once: bool = False
) -> Any:
    """
    Declare a step: a method that handlers call, and that is skipped once it is done.

    Its return value is kept (JSON, 64 KiB), under the task's idempotency key and the step's name. A later attempt at the same
    task finds it there and goes on after it; so does the next revision, after a move or a redrive of a task that has not
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
    """
    options = StepOptions(atomic=atomic, retry=retry, was=was, once=once)
    return Step(method, options) if method is not None else partial(Step, options=options)
