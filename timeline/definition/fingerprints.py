"""Fingerprints: whether a step is given the same again, and whether the code that takes steps is the same."""

from __future__ import annotations

import hashlib
import json
from base64 import b85encode
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from types import CodeType, FunctionType
from typing import Any, Final
from uuid import UUID

from django.db.models import Model

from timeline.definition.handlers import Task
from timeline.definition.steps import Step

# What JSON has not, and is told apart by its text.
_PLAIN: Final = (Decimal, date, time, timedelta, UUID, Enum, bytes)


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
    """
    Shorten what ``code_of`` gives, for what is kept many times: as much as its first 8 hex digits say, in 5 characters.

    One change in four thousand millions is not seen by it.
    """
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
