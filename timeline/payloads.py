"""Plain JSON: what a payload, a parameter or a result may be, checked before anything is written."""

from __future__ import annotations

import json
import math
from typing import Final

from timeline.exceptions import InvalidInput, NotPlainJSON, PayloadTooLarge

MAX_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 64


def check_text(field: str, value: object, longest: int, *, least: int = 0) -> None:
    """
    Refuse what a text column does not hold.

    Args:
        field: Name of the argument, for the error.
        value: Text of so many characters.
        longest, least: Bounds of its length.

    Raises:
        InvalidInput: naming the field.
    """
    if not isinstance(value, str) or not least <= len(value) <= longest or "\x00" in value or not _is_encodable(value):
        span = f"{least} to {longest}" if least else f"at most {longest}"
        raise InvalidInput(field, f"{value!a:.60} does not do.", f"Give text of {span} characters, without NUL.")


def check_json(field: str, value: object) -> None:
    """
    Refuse what JSON cannot hold exactly.

    Args:
        field: Name of the argument, for the error.
        value: Anything; tuples, sets, dates, Decimals and models are refused rather than converted.

    Raises:
        NotPlainJSON: names the place inside the value.
        PayloadTooLarge: if its JSON is over 64 KiB.
    """
    _check(field, value, "", 0)
    try:
        size = len(json.dumps(value, ensure_ascii=False).encode())
    except ValueError:
        raise NotPlainJSON(field, "has a whole number of more digits than Python writes.") from None
    if size > MAX_BYTES:
        raise PayloadTooLarge(field, size, MAX_BYTES)


def _check(field: str, value: object, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise NotPlainJSON(field, f"is nested deeper than {MAX_DEPTH} levels.")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotPlainJSON(field, f"has a key {key!r} that is not text{_at(path)}.")
            _check(field, key, path, depth)
            _check(field, item, f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(field, item, f"{path}[{index}]", depth + 1)
    else:
        _check_scalar(field, value, path)


def _check_scalar(field: str, value: object, path: str) -> None:
    if isinstance(value, str):
        if "\x00" in value or not _is_encodable(value):
            raise NotPlainJSON(field, f"has text{_at(path)} with a NUL or half a character, which no database stores.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise NotPlainJSON(field, f"has {value}{_at(path)}, which JSON does not know.")
    elif value is not None and type(value) not in (int, float, bool):
        raise NotPlainJSON(field, f"has a {type(value).__name__}{_at(path)}.")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _at(path: str) -> str:
    return f" at {path}" if path else ""
