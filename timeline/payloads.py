"""Plain JSON: what a payload, a parameter or a result may be, checked before anything is written."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from timeline.conf import get_settings
from timeline.exceptions import InvalidInput, NotPlainJSON, PayloadTooLarge

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


MAX_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 64
_TEXT: Final = json.JSONEncoder(ensure_ascii=False)  # One for all: a call of ``json.dumps`` makes one for itself.

# ``accessToken``, ``access_token`` and ``access-token`` have the same words.
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PASSED_OVER: Final = ("code", "value")


def check_text(field: str, value: object, longest: int, *, least: int = 0) -> None:
    """Refuse what a text column of ``least`` to ``longest`` characters does not hold; ``InvalidInput`` names the field."""
    if not isinstance(value, str) or not least <= len(value) <= longest or "\x00" in value or not is_encodable(value):
        fitting = _("Give text of at most %(longest)s characters, without NUL.")
        if least:
            fitting = _("Give text of %(least)s to %(longest)s characters, without NUL.")
        said = {"value": f"{value!a:.60}", "least": least, "longest": longest}
        raise InvalidInput(field, _("%(value)s is not allowed."), fitting, **said)


def check_is_text(field: str, value: object) -> None:
    """Refuse what is no text (``InvalidInput``). Text of any length is taken, and cut when stored."""
    if not isinstance(value, str):
        raise unfit(field, value, _("Give text."))


def check_is_dict(field: str, value: object) -> None:
    """Refuse what is no dict; ``InvalidInput`` names the field."""
    if not isinstance(value, dict):
        raise InvalidInput(field, _("is a %(kind)s."), _("Give a dict."), kind=type(value).__name__)


def check_flag(field: str, value: object) -> None:
    """Refuse what is neither True nor False (``InvalidInput``): the text ``"no"`` would count as yes."""
    if not isinstance(value, bool):
        raise unfit(field, value, _("Give True or False."))


def unfit(field: str, value: object, remedy: StrOrPromise) -> InvalidInput:
    """The error for a value of a wrong kind."""
    return InvalidInput(field, _("%(value)s is not allowed."), remedy, value=f"{value!a:.60}")


def as_text(text: str) -> str:
    """Give a text as it is: of a member of an enumeration that is text, ``str()`` may give the name of the member."""
    return text if type(text) is str else str.__str__(text)


def clip(text: str, length: int) -> str:
    """Cut to what a text column of so many characters holds, without what no database stores."""
    if text.isascii() and text.isprintable() and len(text) <= length:
        return text
    clean = text.replace("\x00", "").encode(errors="replace").decode()
    return clean if len(clean) <= length else f"{clean[: length - 1]}…"


def check_json(field: str, value: object) -> int:
    """
    Refuse what JSON cannot hold exactly (``NotPlainJSON`` names the place; also dates, Decimals, tuples), or over 64 KiB
    (``PayloadTooLarge``); how many bytes its JSON has.
    """
    return len(json_text(field, value).encode())


def json_text(field: str, value: object) -> str:
    """Write a value as JSON; refuses like ``check_json``."""
    if not _is_simple(value, 0):
        _check(field, value, "", 0)
    try:
        text = _TEXT.encode(value)
    except ValueError:
        raise NotPlainJSON(field, _("has a whole number of more digits than Python writes.")) from None
    if len(text) * 4 > MAX_BYTES and (size := len(text.encode())) > MAX_BYTES:  # No character has more than four.
        raise PayloadTooLarge(field, size, MAX_BYTES)
    return text


def same_json(one: object, other: object) -> bool:
    """Whether two values are the same JSON: numbers by value, as PostgreSQL keeps them; True is no number."""
    return _by_value(one) == _by_value(other)


def _by_value(value: object) -> object:
    return json.loads(json.dumps(value), parse_int=_number, parse_float=_number)


def _number(text: str) -> tuple[Decimal]:
    return (Decimal(text),)  # No JSON is read as a tuple, so nothing else equals it.


def _is_simple(value: Any, depth: int) -> bool:
    """Whether a look is enough to see that ``_check`` refuses nothing: that takes a third of its time, and is what most are."""
    kind = type(value)
    if kind is str:
        return bool(value.isascii() and "\x00" not in value)
    if value is None or kind is int or kind is bool:
        return True
    if kind is dict and depth < MAX_DEPTH:
        for key, item in value.items():
            if type(key) is not str or not _is_simple(key, depth) or not _is_simple(item, depth + 1):
                return False
        return True
    return kind is list and depth < MAX_DEPTH and all(_is_simple(item, depth + 1) for item in value)


def _check(field: str, value: object, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotPlainJSON(field, _("is nested deeper than %(most)s levels."), most=MAX_DEPTH)
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                problem = _("has a key %(key)s that is not text%(at)s.")
                raise NotPlainJSON(field, problem, key=repr(key), at=_at(path))
            _check(field, key, path, depth)
            _check(field, item, f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(field, item, f"{path}[{index}]", depth + 1)
    else:
        _check_scalar(field, value, path)


def _check_scalar(field: str, value: object, path: str) -> None:
    if isinstance(value, str):
        if "\x00" in value or not is_encodable(value):
            problem = _("has text%(at)s with a NUL or half a character, which no database stores.")
            raise NotPlainJSON(field, problem, at=_at(path))
    elif isinstance(value, float) and not math.isfinite(value):
        raise NotPlainJSON(field, _("has %(value)s%(at)s, which JSON does not know."), value=value, at=_at(path))
    elif value is not None and type(value) not in (int, float, bool):
        raise NotPlainJSON(field, _("has a %(kind)s%(at)s."), kind=type(value).__name__, at=_at(path))


def is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _at(path: str) -> StrOrPromise:
    return format_lazy(_(" at {path}"), path=path) if path else ""


def check_data(field: str, value: object) -> int:
    """Refuse what ``check_json`` refuses, or a name such as ``password`` in it (``InvalidInput``). Size in bytes."""
    size = check_json(field, value)
    if value and (name := next(_secrets(value), None)):
        problem = _("has the name %(name)r, which looks like that of a secret.")
        remedy = _("Keep it with your own models, and send what it is found by, e.g. %(name)s_id.")
        raise InvalidInput(field, problem, remedy, name=name)
    return size


def _secrets(value: object) -> Iterator[str]:
    """Names that look like those of secrets, at any depth. What is yes, no or nothing is no secret."""
    if isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(item, bool | None) and is_secret(name):
                yield name
            yield from _secrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item)


def is_secret(name: str) -> bool:
    """Whether a name ends in a word of ``SECRET_NAMES``: ``clientSecret``, ``otp_code``, ``password_2``; not ``otp_id``."""
    words = _words(unicodedata.normalize("NFKC", name))
    while words and (words[-1].isdigit() or words[-1] in _PASSED_OVER):
        words.pop()
    said = f"_{'_'.join(words)}"
    return said.endswith(_endings(tuple(get_settings().SECRET_NAMES)))


@lru_cache(maxsize=8)
def _endings(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """How names of secrets may end: as words, or in one, such as ``apikey``; each also of several."""
    known = [words for words in map(_words, secrets) if words]
    return tuple(
        f"_{between.join(words)}{several}" for words in known for between in ("_", "") for several in ("", "s")
    )


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
