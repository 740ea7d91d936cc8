"""
Where tasks, times and lines of a timeline stand on a drawing. Pure: no database, no markup.

Time runs to the right, with an axis for each point from which times count. A follow-up stands below its predecessor and to
the right of its left edge, so that the line between them crosses nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.reading.guard_words import guard_in_words
from timeline.reading.picture_shapes import (
    BESIDE,
    BOLD,
    CARD,
    EDGE,
    GAP,
    HEAD,
    INDENT,
    LETTER,
    LINE,
    PAD,
    TITLE,
    AxisMark,
    Band,
    Card,
    Chip,
    FollowerLine,
    Row,
    TextLine,
    TimelinePicture,
    flow,
    place,
    wrapped,
)
from timeline.timing.offsets import Offset
from timeline.timing.states import states_in, told_states

if TYPE_CHECKING:
    from timeline.definition import Definition, Task

MOST_LINES: Final = 3  # Lines of a docstring that are shown.
NEAREST: Final = 84  # Distance of two times on an axis, if there is a day or less between them.
STEP: Final = 16  # So much is added each time the span is twice as long,
FARTHEST: Final = 176  # up to this distance.
A_MONTH: Final = 30.4375  # Days.


class _KnownTask(NamedTuple):
    """A task, the point from which its times count, and its distance from there if all earlier tasks end at once."""

    name: str
    definition: Definition
    anchor: str
    offset: Offset
    before: str


def timeline_picture(definition: Definition, counts: Mapping[str, Iterable[Chip]] | None = None) -> TimelinePicture:
    """Lay out a timeline with chips below each task; of a machine, only tasks that its table does not show."""
    groups: dict[str, list[_KnownTask]] = defaultdict(list)
    for known in _known(definition).values():
        groups[known.anchor].append(known)
    inner = max([_Axis(group).width for group in groups.values()], default=CARD)
    starts, exits = Row(pgettext("timeline", "Starts"), EDGE, _starts(definition)), _exits(definition)
    y = flow(starts, inner)
    picture = TimelinePicture(definition.name, inner + 2 * EDGE, 0, starts, exits, [], [], [])
    for anchor, group in groups.items():
        y = _draw(picture, anchor, group, y + GAP, counts or {})
    exits.y = y + GAP
    picture.height = (flow(exits, inner) if exits.chips else y) + EDGE
    return picture


def guards_of(definition: Definition, declared: Task[Any, ..., Any]) -> list[str]:
    """The conditions of a task, for people: ``unless has payment``, or their titles, followed by their names in code."""
    asked = ((option, guard) for option, guard in declared.guards.items() if guard is not None)
    return [guard_in_words(definition, option, guard, with_name=True) for option, guard in asked]


def starts_of(definition: Definition) -> list[str]:
    """The triggers of a run, each in a few words."""
    return [
        definition.titled(start) if isinstance(start, str) else start.describe(definition)
        for start in definition.starts_on
    ]


class _Axis:
    def __init__(self, group: Sequence[_KnownTask]) -> None:
        self.places: dict[timedelta, int] = {}
        self.said: dict[timedelta, str] = {}
        anchor = group[0].anchor
        lengths = sorted({timedelta(0), *(_length(known.offset) for known in group)} if anchor else [])
        self.said[timedelta(0)] = _origin(anchor)
        for known in group:
            self.said.setdefault(_length(known.offset), _signed(known.offset))
        x = EDGE
        for number, length in enumerate(lengths):
            if number:
                apart = max((length - lengths[number - 1]) / timedelta(days=1), 1)
                words = int((len(self.said.get(lengths[number - 1], "")) + len(self.said.get(length, ""))) * LETTER / 2)
                x += max(words + PAD, min(NEAREST + int(STEP * log2(apart)), FARTHEST))
            self.places[length] = x
        self.group = group
        self.indents = _indents(group)

    def x(self, known: _KnownTask) -> int:
        """The left edge of the card of a task."""
        return self.places.get(_length(known.offset), EDGE) + INDENT * self.indents[known.name]

    @property
    def width(self) -> int:
        return max(self.x(known) for known in self.group) + CARD - EDGE


def _known(definition: Definition) -> dict[str, _KnownTask]:
    waiting = dict(definition.tasks)
    found: dict[str, _KnownTask] = {}
    while waiting:
        for name, declared in list(waiting.items()):
            when = declared.when
            before = when.predecessor_name if when is not None else ""
            if before in waiting and before != name:
                continue
            del waiting[name]
            first = found.get(before)
            offset = when.offset if when is not None else Offset()
            anchor = when.anchor if when is not None else ""
            if first is not None:
                anchor, offset = first.anchor, _sum(first.offset, offset)
            found[name] = _KnownTask(name, definition, anchor, offset, before if first is not None else "")
    return found


def _draw(
    picture: TimelinePicture, anchor: str, group: list[_KnownTask], y: int, counts: Mapping[str, Iterable[Chip]]
) -> int:
    axis = _Axis(group)
    band = Band(_title(anchor), y, [], picture.width - EDGE)
    y = band.axis + GAP if axis.places else y + HEAD
    cards: dict[str, Card] = {}
    for known in _in_order(group):
        card = _card(known, axis.x(known), y, counts.get(known.name, ()))
        cards[known.name] = card
        y = card.bottom + GAP
        if known.before:
            first = cards[known.before]
            picture.edges.append(FollowerLine(first.stem, first.bottom, card.middle, card.x))
    ends: dict[timedelta, int] = {}
    for known in group:
        ends[_length(known.offset)] = max(ends.get(_length(known.offset), 0), cards[known.name].middle)
    band.marks = [
        AxisMark(x, axis.said[length], not length, ends.get(length, band.axis)) for length, x in axis.places.items()
    ]
    picture.bands.append(band)
    picture.cards += cards.values()
    return y - GAP


def _in_order(group: Sequence[_KnownTask]) -> list[_KnownTask]:
    followers: dict[str, list[_KnownTask]] = defaultdict(list)
    for known in group:
        followers[known.before].append(known)
    found: list[_KnownTask] = []
    ahead = sorted(followers[""], key=lambda known: _length(known.offset), reverse=True)
    while ahead:
        known = ahead.pop()
        found.append(known)
        ahead += sorted(followers[known.name], key=lambda known: _length(known.offset), reverse=True)
    return found


def _indents(group: Sequence[_KnownTask]) -> dict[str, int]:
    """How far to the right of its time each card stands, so that it is to the right of its predecessor."""
    offsets = {known.name: _length(known.offset) for known in group}
    indents: dict[str, int] = {}
    for known in group:
        same = known.before and offsets[known.before] == offsets[known.name]
        indents[known.name] = indents[known.before] + 1 if same else 0
    return indents


def _card(known: _KnownTask, x: int, y: int, counts: Iterable[Chip]) -> Card:
    declared = known.definition.tasks[known.name]
    card = Card(known.name, declared.title or known.name, _kind(declared), x, y)
    told = [("title", text) for text in wrapped(card.title, BOLD)]
    told += [("key", known.name)] if declared.title else []
    told += [("when", text) for text in wrapped(declared.describe(), LETTER)]
    told += [
        ("guard", text) for guard in guards_of(known.definition, declared) for text in wrapped(f"◇ {guard}", LETTER)
    ]
    doc = "" if declared.is_timer else declared.doc
    told += [("doc", text) for text in wrapped(doc, LETTER, MOST_LINES)]
    bottom = y + PAD
    for kind, text in told:
        bottom += TITLE if kind == "title" else LINE
        card.lines.append(TextLine(kind, text, bottom - 4))
    card.chips = list(counts)
    if card.chips:
        bottom = place(card.chips, x + PAD, bottom + BESIDE, x + CARD - PAD)
    card.height = bottom + PAD - 4 - y
    return card


def _starts(definition: Definition) -> list[Chip]:
    said = starts_of(definition) or [pgettext("timeline", "by hand only")]
    return [Chip(f"▸ {text}", "start") for text in said]


def _exits(definition: Definition) -> Row:
    chips = [
        Chip(f"■ {definition.titled(event)} → {definition.titled(name)}", "exit")
        for event, name in definition.exits.items()
    ]
    return Row(pgettext("timeline", "Exits"), 0, chips)


def _title(anchor: str) -> str:
    if states := states_in(anchor):
        return _("When %(states)s is entered") % {"states": told_states(states)}
    kind, _colon, name = anchor.partition(":")
    if kind == "field":
        return _("Around %(field)s") % {"field": name}
    return _("From the start of the run") if kind else _("On demand, by schedule()")


def _origin(anchor: str) -> str:
    kind, _colon, name = anchor.partition(":")
    return (
        name
        if kind == "field"
        else pgettext("timeline", "entered")
        if states_in(anchor)
        else pgettext("axis of a timeline", "start")
    )


def _kind(declared: Task[Any, ..., Any]) -> str:
    when = declared.when
    if declared.is_timer:
        return "timer"
    if when is not None and when.awaits:
        return "wait"
    if declared.is_repeated:
        return "series"
    return "each" if when is not None and when.is_for_each else "task"


def _sum(one: Offset, other: Offset) -> Offset:
    return Offset(one.months + other.months, one.days + other.days, one.exact + other.exact)


def _length(offset: Offset) -> timedelta:
    return timedelta(days=offset.months * A_MONTH + offset.days) + offset.exact


def _signed(offset: Offset) -> str:
    length, way = _length(offset), -1 if offset.exact < timedelta(0) else 1
    offset = Offset(
        offset.months, offset.days + way * abs(offset.exact).days, way * (abs(offset.exact) % timedelta(days=1))
    )
    return f"{'−' if length < timedelta(0) else '+'} {offset.describe()}" if length else ""
