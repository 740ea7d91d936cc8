"""Fingerprints: whether a step is given the same again, and whether the code that takes steps is the same."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

from django.db.models import Model

from timeline.definition.handlers import Task

Given = tuple[tuple[Any, ...], dict[str, Any]]
"""What a step is called with: positional arguments and named ones."""


def digest_of(given: Given) -> str:
    """16 hex digits of what a step is given: of entities their keys, else what JSON has of it. The rest is not told apart."""
    text = ""
    with suppress(TypeError, ValueError, RecursionError):
        text = json.dumps(given, sort_keys=True, default=_told_apart)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def _told_apart(value: object) -> object:
    return [value._meta.label_lower, str(value.pk)] if isinstance(value, Model) else None


def code_of(cls: type) -> str:
    """16 hex digits of the code of a timeline, but for its steps: what decides which steps are taken, and in which order."""
    found = []
    for home in cls.__mro__:
        if home.__module__.startswith("timeline."):
            break
        for name, value in vars(home).items():
            function = value.method if isinstance(value, Task) else value
            if isinstance(function, FunctionType):
                found.append((name, _as_written(function.__code__)))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()[:16]


def _as_written(code: CodeType) -> tuple[object, ...]:
    """What a function does, the same in each process: sets of constants have another order in each."""
    constants = [
        _as_written(known)
        if isinstance(known, CodeType)
        else sorted(map(repr, known))
        if isinstance(known, frozenset)
        else repr(known)
        for known in code.co_consts
    ]
    return (code.co_code.hex(), constants, code.co_names)
