"""Keywords that what a timeline is declared with does not take: which one, where, and which may be meant."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from types import FrameType
from typing import Any, Final, NoReturn, ParamSpec, TypeVar

from timeline.exceptions import DefinitionError
from timeline.suggestions import did_you_mean

Params = ParamSpec("Params")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)

_DISTANCE: Final = frozenset({"years", "months", "weeks", "days", "hours", "minutes", "seconds"})
_EXAMPLES: Final = {"before": 'before("ends_at", days=5)', "at": 'at("ends_at")'}  # They begin with a field.


def known_keywords(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Let a function answer an unknown keyword with a ``DefinitionError`` that names what may be meant."""
    taken, shape = _keywords(function), signature(function)

    @wraps(function)
    def call(*args: Params.args, **given: Params.kwargs) -> Result:
        if not given.keys() <= taken:
            _refuse(function, f"{function.__name__}()", given.keys() - taken, sys._getframe(1))
        try:
            shape.bind(*args, **given)
        except TypeError as error:
            _refuse_arguments(shape, function.__name__, str(error), sys._getframe(1))
        return function(*args, **given)

    return call


def known_units(method: Callable[Params, Result]) -> Callable[Params, Result]:
    """Let a method that declares nothing answer an unknown keyword with a ``TypeError`` that names what may be meant."""
    taken = _keywords(method)

    @wraps(method)
    def call(*args: Params.args, **given: Params.kwargs) -> Result:
        if unknown := given.keys() - taken:
            name = min(unknown)
            remedy = did_you_mean(name, taken, otherwise=f"It takes {', '.join(sorted(taken))}.")
            raise TypeError(f"{method.__name__}() takes no {name}=. {remedy}")
        return method(*args, **given)

    return call


def known_arguments(cls: Class) -> Class:
    """Let a class that is made of keywords answer in the same way."""
    make: Any = vars(cls)["__init__"]
    taken, shape = _keywords(make), signature(cls)

    @wraps(make)
    def init(self: Any, *args: Any, **given: Any) -> None:
        if not given.keys() <= taken:
            _refuse(make, f"{cls.__name__}()", given.keys() - taken, sys._getframe(1))
        try:
            shape.bind(*args, **given)
        except TypeError as error:
            _refuse_arguments(shape, cls.__name__, str(error), sys._getframe(1))
        make(self, *args, **given)

    type.__setattr__(cls, "__init__", init)
    return cls


def _keywords(function: Callable[..., Any]) -> frozenset[str]:
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    parameters = signature(function).parameters.values()
    return frozenset(each.name for each in parameters if each.kind in named and each.name != "self")


def _refuse_arguments(shape: Signature, name: str, error: str, frame: FrameType) -> NoReturn:
    """Say which argument is missing, or that there are too many, and how it is written."""
    example = _EXAMPLES.get(name)
    missing = re.match(r"missing a required .*'(\w+)'", error)
    if missing and example:
        problem = "takes a field of the entity first."
    else:
        problem = f"misses an argument: {missing[1]!r}." if missing else f"has {error}."
    needed = ", ".join(_written(each) for each in shape.parameters.values() if each.default is each.empty)
    raise DefinitionError(
        _home(frame), f"{name}() in line {frame.f_lineno} {problem}", f"Write {example or f'{name}({needed})'}."
    )


def _written(parameter: Parameter) -> str:
    if parameter.kind == Parameter.VAR_POSITIONAL:
        return "…"
    return f"{parameter.name}=…" if parameter.kind == Parameter.KEYWORD_ONLY else parameter.name


def _home(frame: FrameType) -> str:
    """The class that is being declared, or else the module."""
    return str(frame.f_locals.get("__qualname__", "")).rpartition(".")[2] or str(frame.f_globals.get("__name__"))


def _refuse(function: Callable[..., Any], word: str, unknown: set[str], frame: FrameType) -> NoReturn:
    name = min(unknown)
    problem = f"has {name}= in line {frame.f_lineno}, which {word} does not take."
    raise DefinitionError(_home(frame), problem, _remedy(function, name))


def _remedy(function: Callable[..., Any], name: str) -> str:
    known = _keywords(function)
    if name in signature(function).parameters:
        return f"Give it without its name, before all others: {function.__name__}({name}, …)."
    otherwise = f"Known: {', '.join(sorted(known)) or 'none'}."
    if did_you_mean(name, _DISTANCE):
        otherwise = "A distance goes with after() or before()."
    return did_you_mean(name, known, otherwise=otherwise)
