"""Lists in parts: at most so many at a time, and a cursor that leads to the next."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from timeline.ojs.errors import Invalid

USUAL: Final = 50
MOST: Final = 200


def number(query: Mapping[str, str], name: str, usual: int, most: int, least: int = 0) -> int:
    """A number of the query string."""
    text = query.get(name, "")
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) < 10) or not least <= int(text):
        raise Invalid(name, f"has to be a whole number from {least} on.")
    return min(int(text), most)


def names(query: Mapping[str, str], name: str) -> list[str]:
    """Names of the query string, with commas between them."""
    return [part for part in query.get(name, "").split(",") if part]


def part(
    query: Mapping[str, str], total: int, of: Callable[[int, int], Sequence[Any]]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """
    The part of a list that is asked for, and what is told of it.

    Args:
        total: How long the list is.
        of: Reads it from a place to another.
    """
    limit = number(query, "limit", USUAL, MOST, least=1)
    offset = _offset(query["cursor"]) if query.get("cursor") else number(query, "offset", 0, 10**9)
    found = of(offset, offset + limit)
    more = offset + limit < total
    told: dict[str, Any] = {"total": total, "limit": limit, "offset": offset, "has_more": more}
    return found, told | ({"next_cursor": _cursor(offset + limit)} if more else {})


def _cursor(offset: int) -> str:
    return base64.urlsafe_b64encode(f"o{offset}".encode()).decode().rstrip("=")


def _offset(cursor: str) -> int:
    try:
        text = base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)).decode()
    except (ValueError, binascii.Error):
        text = ""
    if not (text[:1] == "o" and text[1:].isascii() and text[1:].isdigit() and len(text) < 12):
        raise Invalid("cursor", "is none that an answer has given.")
    return int(text[1:])
