"""Where things stand in the picture of an entity's timeline. Pure geometry; a template draws it."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from django.utils.formats import date_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.admin.entities import Item

WIDTH: Final = 960
LEFT: Final = 210  # Where the axis begins; left of it stand the names of the lanes.
RIGHT: Final = 930
TOP: Final = 44
LANE: Final = 40
LETTER: Final = 6.6  # Width of a letter of the small text, roughly.
LONGEST_NAME: Final = 28

_STEPS: Final = [
    *(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30)),
    *(timedelta(hours=hours) for hours in (1, 3, 6, 12)),
    *(timedelta(days=days) for days in (1, 2, 7, 14, 30, 91, 182, 365, 3 * 365, 10 * 365, 100 * 365, 1000 * 365)),
]
_MOST_TICKS: Final = 7


class Mark(NamedTuple):
    """One sign in a lane. ``text`` stands beside it, ending there if ``is_before``; empty where there is no room."""

    item: Item
    x: float
    text: str
    text_x: float
    is_before: bool


class Lane(NamedTuple):
    """The signs of one task key."""

    key: str
    name: str
    y: int
    marks: list[Mark]


class Tick(NamedTuple):
    """A moment on the axis."""

    x: float
    text: str


class Drawing(NamedTuple):
    """The whole picture."""

    height: int
    lanes: list[Lane]
    ticks: list[Tick]
    now_x: float
    bottom: int


def drawing(items: Sequence[Item], *, now: datetime, zone: tzinfo) -> Drawing | None:
    """Place items, each with a time, in lanes on one axis; None if there is nothing to place."""
    moments = [item.at for item in items if item.at is not None]
    if not moments:
        return None
    begin, end = min([*moments, now]), max([*moments, now])
    margin = max((end - begin) * 0.06, timedelta(minutes=1))
    axis = _Axis(begin - margin, end + margin)
    keys: dict[str, list[Item]] = {}
    for item in sorted(items, key=lambda item: (item.at or now, item.state == "foreseen")):
        keys.setdefault(item.key, []).append(item)
    lanes = [
        Lane(key, _short(key), TOP + LANE * number + LANE // 2, _marks(found, axis))
        for number, (key, found) in enumerate(keys.items())
    ]
    bottom = TOP + LANE * len(lanes)
    return Drawing(bottom + 12, lanes, _ticks(axis, zone), axis.x(now), bottom)


class _Axis(NamedTuple):
    begin: datetime
    end: datetime

    def x(self, at: datetime) -> float:
        return round(LEFT + (RIGHT - LEFT) * ((at - self.begin) / (self.end - self.begin)), 1)


def _marks(items: Sequence[Item], axis: _Axis) -> list[Mark]:
    places = [axis.x(item.at) for item in items if item.at is not None]
    marks, taken = [], 0.0
    for number, (item, x) in enumerate(zip(items, places, strict=True)):
        width = 12 + LETTER * len(item.label)
        until = places[number + 1] - 10 if number + 1 < len(places) else float(WIDTH)
        if x + width <= until:
            marks.append(Mark(item, x, item.label, x + 12, False))
            taken = x + width
        elif x - width >= max(taken, LEFT):
            marks.append(Mark(item, x, item.label, x - 12, True))
            taken = x + 10
        else:
            marks.append(Mark(item, x, "", x, False))
            taken = x + 10
    return marks


def _ticks(axis: _Axis, zone: tzinfo) -> list[Tick]:
    """Moments at round times of the zone, not more than there is room for."""
    span = axis.end - axis.begin
    step = next((step for step in _STEPS if span / step <= _MOST_TICKS), _STEPS[-1])
    at = datetime.combine(axis.begin.astimezone(zone).date(), time.min, tzinfo=zone)
    ticks = []
    while at <= axis.end:
        # Near the right end there is no room for the text.
        if at >= axis.begin and axis.x(at) < RIGHT - 30:
            ticks.append(Tick(axis.x(at), _said(at, step)))
        at += step  # On the wall clock: a day is a day, also across a clock change.
    return ticks


def _said(at: datetime, step: timedelta) -> str:
    if step < timedelta(days=1):
        return date_format(at, "H:i") if at.time() != time.min else date_format(at, "MONTH_DAY_FORMAT")
    return date_format(at, "MONTH_DAY_FORMAT" if step < timedelta(days=100) else "YEAR_MONTH_FORMAT")


def _short(key: str) -> str:
    return key if len(key) <= LONGEST_NAME else f"{key[: LONGEST_NAME - 1]}…"
