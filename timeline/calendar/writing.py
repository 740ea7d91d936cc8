"""A calendar as text, in the format that calendar programs read (RFC 5545)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from icalendar import Calendar, Event

# How often calendar programs should look again. They decide by themselves.
_LOOK_AGAIN: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Entry:
    """
    What a calendar says of one thing.

    Args:
        uid: By which programs know it again.
        version: Grows with each change of it.
        at: When it is.
        title: What it is.
        about: What it is about; may be empty.
    """

    uid: str
    version: int
    at: datetime
    title: str
    about: str


def calendar_of(entries: Iterable[Entry], *, name: str, now: datetime) -> bytes:
    """
    Write a calendar.

    Args:
        entries: In any order.
        name: What programs call it.
        now: When it is written.
    """
    calendar = Calendar()
    calendar.add("prodid", "-//django-entity-timeline//EN")
    calendar.add("version", "2.0")
    calendar.add("x-wr-calname", _clean(name))
    calendar.add("refresh-interval", _LOOK_AGAIN, parameters={"value": "DURATION"})
    for entry in entries:
        calendar.add_component(_event(entry, now))
    text: bytes = calendar.to_ical()
    return text


def _event(entry: Entry, now: datetime) -> Event:
    """One moment: it takes no time, and keeps nobody busy."""
    event = Event()
    event.add("uid", entry.uid)
    event.add("sequence", entry.version)
    event.add("dtstamp", now.astimezone(UTC))
    event.add("dtstart", entry.at.astimezone(UTC))
    event.add("summary", _clean(entry.title))
    if entry.about:
        event.add("description", _clean(entry.about))
    event.add("transp", "TRANSPARENT")
    event.add("class", "PRIVATE")
    return event


def _clean(text: str) -> str:
    """Without what ends a line, or is no letter at all: the format knows no way to write that."""
    return "".join(" " if unicodedata.category(letter) in _UNWRITABLE else letter for letter in text)


_UNWRITABLE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
