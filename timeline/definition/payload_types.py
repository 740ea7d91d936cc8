"""The declared type of a payload, a dataclass or a TypedDict, and whether plain JSON is of it."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints, is_typeddict

from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput

_PLAIN: Final = (str, int, float, bool, types.NoneType)


class Misfit(Exception):
    """A value is not of its type. ``path`` is where in the payload: ``.lines[2].size``; empty: the payload itself."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(path, problem)


def check_payload(payload: Mapping[str, Any], declared: type, *, event: str) -> None:
    """Refuse a payload that is not of the declared dataclass or TypedDict; ``InvalidInput`` names the place."""
    try:
        _check(payload, declared, "")
    except Misfit as misfit:
        problem = _("does not fit %(event)s: %(at)s %(misfit)s.")
        said = {"event": event, "at": misfit.path.lstrip(".") or "payload", "misfit": misfit.problem}
        remedy = _("Give what %(type)s declares.")
        raise InvalidInput("payload", problem, remedy, type=declared.__name__, **said) from None


def type_problem(declared: object) -> str:
    """Say what is wrong with a type as that of a payload; empty: nothing."""
    if not _is_record(declared):
        return f"{declared!a:.60}"
    try:
        return _unknown(declared, ())
    except (NameError, TypeError) as error:
        return f"{getattr(declared, '__name__', declared)}, whose types cannot be read ({error})"


def _unknown(declared: Any, seen: tuple[Any, ...]) -> str:
    """Name the first type in it that JSON has not."""
    if declared in seen or declared is Any or declared in _PLAIN or get_origin(declared) is Literal:
        return ""
    if _is_record(declared):
        inner = [known for known, _needed in members_of(declared).values()]
    elif _is_union(declared) or get_origin(declared) is list:
        inner = list(get_args(declared))
    elif get_origin(declared) is dict and get_args(declared)[0] is str:
        inner = [get_args(declared)[1]]
    elif declared in (list, dict) or (isinstance(declared, type) and issubclass(declared, Enum)):
        inner = []
    else:
        return f"{declared!a:.60}"
    return next((found for one in inner if (found := _unknown(one, (*seen, declared)))), "")


def _check(value: object, declared: Any, path: str) -> None:
    if declared is Any:
        return
    if declared in (None, *_PLAIN):
        _check_plain(value, declared, path)
    elif _is_record(declared):
        _check_record(value, declared, path)
    elif _is_union(declared):
        _check_union(value, get_args(declared), path)
    elif (get_origin(declared) or declared) is list:
        _check_list(value, get_args(declared), path)
    elif (get_origin(declared) or declared) is dict:
        _check_dict(value, get_args(declared), path)
    else:
        _check_choice(value, declared, path)


def _check_list(value: object, inner: tuple[Any, ...], path: str) -> None:
    if not isinstance(value, list):
        raise Misfit(path, f"is {value!a:.40}, not a list")
    for index, item in enumerate(value if inner else ()):
        _check(item, inner[0], f"{path}[{index}]")


def _check_dict(value: object, inner: tuple[Any, ...], path: str) -> None:
    if not isinstance(value, dict):
        raise Misfit(path, f"is {value!a:.40}, not a dict")
    for key, item in (value if inner else {}).items():
        _check(item, inner[1], f"{path}.{key}")


def _check_choice(value: object, declared: Any, path: str) -> None:
    """Of a Literal, or of an enumeration by the values of its members."""
    if get_origin(declared) is Literal:
        known, said = get_args(declared), f"one of {', '.join(map(repr, get_args(declared)))}"
    else:
        known, said = tuple(member.value for member in declared), f"a value of {declared.__name__}"
    if not any(value == one and isinstance(value, bool) is isinstance(one, bool) for one in known):
        raise Misfit(path, f"is {value!a:.40}, not {said}")


def _check_plain(value: object, declared: Any, path: str) -> None:
    wanted = types.NoneType if declared is None else declared
    fits = type(value) is wanted or (wanted is float and type(value) is int)
    if not fits and not (wanted is str and isinstance(value, str)):
        raise Misfit(path, f"is {value!a:.40}, not {'None' if wanted is types.NoneType else wanted.__name__}")


def _check_record(value: object, declared: type, path: str) -> None:
    if not isinstance(value, dict):
        raise Misfit(path, f"is {value!a:.40}, not a dict")
    members = members_of(declared)
    if missing := [name for name, (_type, needed) in members.items() if needed and name not in value]:
        raise Misfit(path, f"lacks {missing[0]!r}")
    for name, item in value.items():
        if name not in members:
            raise Misfit(path, f"has {name!a:.40}, which is not declared")
        _check(item, members[name][0], f"{path}.{name}")


def _check_union(value: object, several: tuple[Any, ...], path: str) -> None:
    first: Misfit | None = None
    for one in several:
        try:
            return _check(value, one, path)
        except Misfit as misfit:
            first = misfit if first is None or len(misfit.path) > len(first.path) else first
    if first is not None:
        raise first
    return None


@cache
def members_of(declared: type) -> dict[str, tuple[Any, bool]]:
    """Name of a field → its type, and whether it has to be there."""
    hints = get_type_hints(declared, include_extras=True)
    if is_typeddict(declared):  # Of annotations that are text, __required_keys__ knows not what they say.
        total = declared.__total__  # type: ignore[attr-defined]  # It is a TypedDict.
        said = {name: get_origin(known) for name, known in hints.items()}
        needed = {name: said[name] is Required or (total and said[name] is not NotRequired) for name in hints}
    else:
        needed = {
            field.name: field.default is MISSING and field.default_factory is MISSING
            for field in fields(declared)
            if field.init
        }
    return {name: (_bare(hints[name]), is_needed) for name, is_needed in needed.items()}


def _bare(known: Any) -> Any:
    return get_args(known)[0] if get_origin(known) in (Required, NotRequired) else known


def _is_record(declared: object) -> bool:
    return isinstance(declared, type) and (is_dataclass(declared) or is_typeddict(declared))


def _is_union(declared: Any) -> bool:
    return get_origin(declared) in (Union, types.UnionType)
