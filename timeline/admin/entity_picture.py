"""Where things stand in the picture of an entity's timeline: percent across, so that it fits every width; pixels down."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.told_times import from_now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.admin.entities import Item


TOP: Final = 34
LANE: Final = 48
LINE: Final = 31  # From the top of a lane, which has its name, to the line with its signs.
NARROWEST: Final = 600  # Pixels from which on words stand beside signs; the style sheet leaves them out below.
LETTER: Final = 6.6  # Pixels of a letter of the small text, roughly.
LONGEST_NAME: Final = 80  # Letters of the name of a lane,
SHORT_NAME: Final = 40  # and where the picture is narrower than that.

_GAPS: Final = [
    *(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30)),
    *(timedelta(hours=hours) for hours in (1, 3, 6, 12)),
    *(timedelta(days=days) for days in (1, 2, 7, 14, 30, 91, 182, 365, 3 * 365, 10 * 365, 100 * 365, 1000 * 365)),
]
_MOST_TICKS: Final = 6
_MARGIN: Final = 0.06
_FEWEST_NEAR: Final = 4  # Moments that have to be near for others to be far away,
_FAR_AWAY: Final = 10  # by so many times the length of the rest.
_NEAR: Final = 82.0  # Where the axis is cut, the part to scale ends here,
_CUT: Final = 84.0  # the cut is here,
_FAR: Final = (85.0, 93.0)  # and what is far away within this, the last at its end.
_PIXEL: Final = 100 / NARROWEST
_SIGN: Final = 10 * _PIXEL  # From the middle of a sign to its edge.
_LINE: Final = 3 * _PIXEL  # Beside the line of now.
_FEWEST: Final = 5  # Letters of words that are cut; with less, they say nothing.


class Mark(NamedTuple):
    """One sign in a lane. ``text`` stands beside it, ending there if ``is_before``; cut, or empty, where there is no room."""

    item: Item
    x: float
    text: str
    is_before: bool


class Lane(NamedTuple):
    """The signs of one task: its name at ``name_y``, the line at ``y``. ``short`` is for narrow pictures; empty: it fits."""

    key: str
    name: str
    short: str
    name_y: int
    y: int
    marks: list[Mark]


class Tick(NamedTuple):
    """A moment on the axis; where there is little room, every other has no words (``is_minor``): days keep theirs."""

    x: float
    text: str
    is_minor: bool


class Drawing(NamedTuple):
    """
    The whole picture. ``now_x`` None: now is not within it. ``held`` is how much of it is on hold, from ``held_x`` on. Behind
    ``cut_x`` the axis is cut: what is there is far away, and only in order. None: it is not.
    """

    height: int
    lanes: list[Lane]
    ticks: list[Tick]
    now_x: float | None
    bottom: int
    held: float = 0.0
    held_x: float = 0.0
    is_empty: bool = False
    cut_x: float | None = None


def drawing(
    items: Sequence[Item],
    *,
    span: timedelta | tuple[datetime, datetime] | None = None,
    most: int | None = None,
    held_until: datetime | None = None,
    now: datetime,
    zone: tzinfo,
) -> Drawing | None:
    """
    Place items that have a time in lanes, by ``lane`` or else key; None: there are none, whatever the span.

    ``span`` is how much time around now is drawn, or from when until when; ``most`` how many lanes; None: all.
    None for ``held_until``: no hold.
    """
    placed = [(item, item.drawn_at) for item in items if item.drawn_at is not None]
    if not placed:
        return None
    axis = _axis_of([at for _item, at in placed], span, now)
    now_x = axis.x(now) if axis.begin <= now <= axis.end else None
    keys: dict[str, list[tuple[Item, float]]] = {}
    for item, at in sorted(placed, key=lambda each: (each[0].group, each[1], each[0].state == "foreseen")):
        if axis.shows(at):
            keys.setdefault(item.lane or item.key, []).append((item, axis.x(at)))
    lanes = [
        Lane(
            key,
            *_names(found[0][0]),
            TOP + LANE * number + 12,
            TOP + LANE * number + LINE,
            _marks(found, now_x, axis, now),
        )
        for number, (key, found) in enumerate(list(keys.items())[:most])
    ]
    bottom = TOP + LANE * max(len(lanes), 1)
    held_x = axis.x(max(now, axis.begin))
    held = max(axis.x(min(held_until, axis.last)) - held_x, 0.0) if held_until else 0.0
    ticks = [*_ticks(axis, zone), *_far_ticks(axis, zone)]
    cut_x = _CUT if axis.far else None
    return Drawing(bottom + 16, lanes, ticks, now_x, bottom, round(held, 2), held_x, not lanes, cut_x)


def _names(item: Item) -> tuple[str, str]:
    """Of the lane that it stands in: the name, and a shorter one if it is long."""
    name = item.lane or item.called.title or item.key
    return _short(name, LONGEST_NAME), _short(name, SHORT_NAME) if len(name) > SHORT_NAME else ""


class _TimeAxis(NamedTuple):
    """From ``begin`` to ``end`` to scale. ``far`` are moments behind that, each at a place of its own behind a cut."""

    begin: datetime
    end: datetime
    far: tuple[datetime, ...] = ()

    @property
    def last(self) -> datetime:
        """The last moment that has a place."""
        return self.far[-1] if self.far else self.end

    def shows(self, at: datetime) -> bool:
        """Whether a moment is in the picture."""
        return self.begin <= at <= self.last

    def x(self, at: datetime) -> float:
        """In percent. Behind the cut: the place of the first far moment that is not before this."""
        if at > self.end and self.far:
            number = next((number for number, far in enumerate(self.far) if far >= at), len(self.far) - 1)
            return round(_FAR[0] + (_FAR[1] - _FAR[0]) * (number + 1) / len(self.far), 2)
        return round((_NEAR if self.far else 100) * ((at - self.begin) / (self.end - self.begin)), 2)


def _axis_of(
    moments: Sequence[datetime], span: timedelta | tuple[datetime, datetime] | None, now: datetime
) -> _TimeAxis:
    if isinstance(span, tuple):
        return _TimeAxis(*span)
    if span is not None:
        return _TimeAxis(now - span / 2, now + span / 2)
    known = sorted([*moments, now])
    far = _far_of(known, now)
    begin, end = known[0], known[-1 - len(far)]
    margin = max((end - begin) * _MARGIN, timedelta(minutes=1))
    return _TimeAxis(begin - margin, end + margin, tuple(dict.fromkeys(far)))


def _far_of(known: Sequence[datetime], now: datetime) -> Sequence[datetime]:
    """
    The last of some moments in order, if all else would be a dot beside the way to them: few, and much farther away than the
    rest is long.
    """
    for number in range(_FEWEST_NEAR, len(known)):
        before, at, length = known[number - 1], known[number], known[number - 1] - known[0]
        if (
            at > now
            and len(known) - number <= number / 2
            and at - before > _FAR_AWAY * max(length, timedelta(minutes=1))
        ):
            return known[number:]
    return []


def _marks(placed: Sequence[tuple[Item, float]], now_x: float | None, axis: _TimeAxis, now: datetime) -> list[Mark]:
    """
    Find room for words as if the picture were as narrow as any that shows them: between signs, words and the line of now.

    Words stand after their sign, or before it if there is more room; what does not fit is cut, and left out if too little of it
    would be left. The title of the sign has all of it. What is far away says how far.
    """
    marks, taken = list[Mark](), 0.0
    for number, (item, x) in enumerate(placed):
        text = (item.title or item.key) if item.state == "event" else item.label
        end = 100.0
        if axis.far and x > _CUT and item.drawn_at is not None:
            text = from_now(item.drawn_at, now)
        elif axis.far:
            end = _CUT
        after = placed[number + 1][1] - _SIGN if number + 1 < len(placed) else end
        before = taken
        if now_x is not None and now_x < x - _SIGN:
            before = max(before, now_x + _LINE)
        if now_x is not None and now_x > x + _SIGN:
            after = min(after, now_x - _LINE)
        room, room_before = _letters(after - x), _letters(x - before)
        is_before = room < len(text) and room_before > room
        if is_before:
            room = room_before
        said = _short(text, room) if room >= min(_FEWEST, len(text)) else ""
        marks.append(Mark(item, x, said, is_before=bool(said) and is_before))
        taken = x + (_width(said) if said and not is_before else _SIGN)
    return marks


def _width(text: str) -> float:
    """Of words with the gap before them, in percent."""
    return (14 + LETTER * len(text)) * _PIXEL


def _letters(room: float) -> int:
    """How many letters fit into so many percent, beside a sign."""
    return int((room / _PIXEL - 14) / LETTER)


def _ticks(axis: _TimeAxis, zone: tzinfo) -> list[Tick]:
    """Moments at round times of the zone, not more than there is room for."""
    span = axis.end - axis.begin
    gap = next((gap for gap in _GAPS if span / gap <= _MOST_TICKS), _GAPS[-1])
    widest = _NEAR - 4 if axis.far else 96  # Nearer to an end, there is no room for the words.
    at = datetime.combine(axis.begin.astimezone(zone).date(), time.min, tzinfo=zone)
    places: list[tuple[float, str]] = []
    while at <= axis.end:
        if at >= axis.begin and 4 < axis.x(at) < widest:
            places.append((axis.x(at), _said(at, gap)))
        at += gap  # On the wall clock: a day is a day, also across a clock change.
    dated = next((number for number, (_x, text) in enumerate(places) if "-" in text), 0)
    return [Tick(x, text, is_minor=(number - dated) % 2 == 1) for number, (x, text) in enumerate(places)]


def _far_ticks(axis: _TimeAxis, zone: tzinfo) -> list[Tick]:
    """The days of what is far away; of several, that of the last, as there is no room for more."""
    return [Tick(axis.x(axis.far[-1]), f"{axis.far[-1].astimezone(zone):%Y-%m-%d}", is_minor=False)] if axis.far else []


def _said(at: datetime, gap: timedelta) -> str:
    if gap < timedelta(days=1) and at.time() != time.min:
        return f"{at:%H:%M}"
    return f"{at:%Y-%m-%d}" if gap < timedelta(days=100) else f"{at:%Y-%m}"


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
