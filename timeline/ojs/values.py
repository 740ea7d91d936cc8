"""Values of requests and answers: moments, durations, names and ids, as the specification writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from timeline.ojs.errors import Invalid
from timeline.timing import EARLIEST, LATEST

MAX_QUEUE: Final = 50  # As long as the column.
MAX_TYPE: Final = 255
MAX_MS: Final = 365 * 24 * 3600 * 1000

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)
_TYPE: Final = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*", re.ASCII)
_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9.-]*", re.ASCII)
_DURATION: Final = re.compile(
    r"P(?=.)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def told(at: datetime) -> str:
    """A moment in UTC, to the millisecond where it has any."""
    at = at.astimezone(UTC)
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace("+00:00", "Z")


def milliseconds(length: timedelta) -> int:
    return round(length / timedelta(milliseconds=1))


def moment(field: str, value: object, now: datetime) -> datetime | None:
    """A moment, or so long from now (``+PT5M``); None stays."""
    if value is None:
        return None
    if isinstance(value, str) and value.startswith("+"):
        return _in_range(field, now + duration(field, value[1:]))
    if not isinstance(value, str) or not _MOMENT.fullmatch(value):
        raise Invalid(field, "has to be a moment as RFC 3339 writes it, with a time zone.", expected="RFC 3339")
    try:
        at = datetime.fromisoformat(value.upper())
        return _in_range(field, at.astimezone(UTC))
    except (ValueError, OverflowError):
        raise Invalid(field, "is no moment that there is.", expected="RFC 3339") from None


def _in_range(field: str, at: datetime) -> datetime:
    if not EARLIEST <= at < LATEST:
        raise Invalid(field, "is too far from now.", expected=f"{EARLIEST.year} to {LATEST.year}")
    return at


def duration(field: str, value: object) -> timedelta:
    """A duration as ISO 8601 writes it, in weeks, days, hours, minutes and seconds."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise Invalid(field, "has to be a duration as ISO 8601 writes it, like PT30S.", expected="ISO 8601")
    weeks, days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    try:
        length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        length = timedelta.max
    if length > timedelta(milliseconds=MAX_MS):
        raise Invalid(field, "is longer than a year.", expected="at most P365D")
    return length


def whole(field: str, value: object, least: int, most: int) -> int:
    """A whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Invalid(field, f"has to be a whole number from {least} to {most}.", expected=f"{least}..{most}")
    return value


def an_object(field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid(field, "has to be a JSON object.", expected="object")
    return value


def an_array(field: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise Invalid(field, "has to be a JSON array.", expected="array")
    return value


def text(field: str, value: object, most: int, *, least: int = 1) -> str:
    if not isinstance(value, str) or not least <= len(value) <= most or "\x00" in value:
        raise Invalid(field, f"has to be text of {least} to {most} characters.", expected="string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Invalid(field, "has half a character.", expected="string") from None
    return value


def flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise Invalid(field, "has to be true or false.", expected="boolean")
    return value


def job_id(field: str, value: object) -> UUID:
    """An id: a UUID of version 7, in lower case."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise Invalid(field, "has to be a UUID of version 7 in lower case.", expected="UUIDv7")
    return UUID(value)


def job_type(field: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_TYPE or not _TYPE.fullmatch(value):
        expected = "names in lower case with dots between them, like email.send"
        raise Invalid(field, f"has to be {expected}, at most {MAX_TYPE} characters.", expected=expected)
    return value


def queue_name(field: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_QUEUE or not _QUEUE.fullmatch(value):
        expected = "a name of lower-case letters, digits, dots and hyphens"
        raise Invalid(field, f"has to be {expected}, at most {MAX_QUEUE} characters.", expected=expected)
    return value


def given(body: Mapping[str, Any], field: str) -> Any:
    """A field that has to be there."""
    if field not in body:
        raise Invalid(field, "is missing.", validation="required")
    return body[field]
