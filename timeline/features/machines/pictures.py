"""
Pictures of machines: the places of states, events and lines on a drawing. Pure: no database, no markup. States stand one below
the other, in the order of the table. A line leads from each event to a lane, and the lane to the target: on the right if it is
further down, on the left if up. So no line crosses a text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

from timeline.features.machines.choices import Edge, edges_of, line_of
from timeline.features.machines.declaration import table_of
from timeline.features.machines.reading import answer_in_words
from timeline.features.machines.table import BACK, STAY, Row, TableAnswer, Target
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.definition import Definition
    from timeline.features.machines.reading import MachineLine, MoveLine


HEAD: Final = 26  # Height of the name of a state, in pixels, as all numbers below.
LINE: Final = 16  # Height of the line of an event.
GAP: Final = 12  # Distance between two states.
EDGE: Final = 8  # Margin around the drawing.
LANE: Final = 10  # Distance between two lanes.
STUB: Final = 12  # Distance from a state to its nearest lane.
LETTER: Final = 7.1  # Approximate width of a bold letter.
LONGEST: Final = 76  # Letters in a line; a longer line is cut.
HUES: Final = 4  # Number of colours; lanes side by side have different ones.


@dataclass(slots=True)
class EventLine:
    """
    An event that a state takes: the target and the timer that sends it in words, its vertical place, and whether the run took
    it.
    """

    event: str
    target: str
    timer: str
    middle: int
    is_gone: bool = False
    said: str = ""  # The event and the target as people call them.

    @property
    def whole(self) -> str:
        """The whole line, of any length."""
        return self.said + (f" · {self.timer}" if self.timer else "")

    @property
    def is_cut(self) -> bool:
        """Whether the line is too long to be shown as a whole."""
        return len(self.whole) > LONGEST

    @property
    def text(self) -> str:
        """The line, cut if it is too long."""
        return f"{self.whole[: LONGEST - 1]}…" if self.is_cut else self.whole


@dataclass(slots=True)
class StateBox:
    """
    A state: ``kind`` is ``working``, ``rest``, ``end``, or ``any`` for several states. ``last_at``: when the run came there
    last; None: never. ``here``: how many runs are there, in words; empty: none, or not shown.
    """

    state: str
    kind: str
    top: int
    height: int = HEAD
    lines: list[EventLine] = field(default_factory=list)
    is_initial: bool = False
    is_now: bool = False
    visits: int = 0
    last_at: datetime | None = None
    here: str = ""
    name: str = ""  # With its title, if it has one.

    @property
    def middle(self) -> int:
        """The vertical place of its name."""
        return self.top + HEAD // 2


@dataclass(slots=True)
class Stretch:
    """A part of a lane: from the line of an event to the state to which it leads."""

    source: int
    target: int
    is_gone: bool


@dataclass(slots=True)
class MachineLane:
    """All lines that lead to one state from one side, a stretch for each event. ``hue``: number of its colour, from 0."""

    x: int
    hue: int
    stretches: list[Stretch]

    @property
    def top(self) -> int:
        """Its upper end."""
        return min(min(known.source, known.target) for known in self.stretches)

    @property
    def bottom(self) -> int:
        """Its lower end."""
        return max(max(known.source, known.target) for known in self.stretches)

    @property
    def target(self) -> int:
        """The vertical place of the state to which it leads."""
        return self.stretches[0].target

    @property
    def is_gone(self) -> bool:
        """Whether the run has gone along a part of it."""
        return any(known.is_gone for known in self.stretches)


@dataclass(slots=True)
class MachinePicture:
    """
    A whole drawing, in pixels, with the edges of the boxes and the lanes on both sides. ``is_about_a_run``: it shows a run's
    way.
    """

    name: str
    width: int
    height: int
    left: int
    right: int
    boxes: list[StateBox]
    lanes_left: list[MachineLane]
    lanes_right: list[MachineLane]
    is_about_a_run: bool

    @property
    def inner(self) -> int:
        """The width of the boxes."""
        return self.right - self.left

    @property
    def text_x(self) -> int:
        """The left edge of the texts."""
        return self.left + 14

    @property
    def timer_x(self) -> int:
        """The middle of the clocks beside events that timers send."""
        return self.left + 7

    @property
    def seen_x(self) -> int:
        """The right edge of the texts about visits."""
        return self.right - 10


def machine_picture(
    definition: Definition,
    *,
    moves: Iterable[MoveLine] = (),
    now_in: str = "",
    here: Mapping[str, object] | None = None,
) -> MachinePicture:
    """
    Lay out a machine, and the way of a run by its moves, the first to the last. ``now_in``: its state; empty: no run. ``here``:
    state → how many runs are in it. Raises ``InvalidInput`` if it is no machine.
    """
    table = table_of(definition)
    way = list(moves)
    gone: dict[tuple[str, str], set[str]] = defaultdict(set)
    for move in way:
        gone[move.from_state, move.event].add(move.to_state)
    rows: list[tuple[str, str, Row, Mapping[str, str]]] = []
    timers = _timers(definition)
    for state in table.states:
        kind = "end" if state in table.ends else "working" if state in table.working else "rest"
        rows.append((state, kind, table.rows[state], timers.get(state, {})))
    rows += [(_("any working state"), "any", table.of_working, {})] if table.of_working else []
    rows += [(_("any open state"), "any", table.of_open, {})] if table.of_open else []
    boxes, top = list[StateBox](), EDGE
    for name, kind, row, when in rows:
        box = StateBox(name, kind, top, is_initial=name == table.initial, is_now=bool(now_in) and name == now_in)
        box.name = definition.titled(name)
        box.lines = _lines(definition, box, row, when, gone)
        box.height = HEAD + LINE * len(box.lines) + (6 if box.lines else 0)
        _visit(box, way)
        box.here = _("%(count)s now") % {"count": here[name]} if here and here.get(name) else ""
        boxes.append(box)
        top += box.height + GAP
    place = {box.state: box for box in boxes if box.kind != "any"}
    targets = [(line, place[line.target], box) for box in boxes for line in box.lines if line.target in place]
    down = [(line, end) for line, end, start in targets if end.top > start.top]
    up = [(line, end) for line, end, start in targets if end.top < start.top]
    inner = max([*(len(line.text) * LETTER + 20 for box in boxes for line in box.lines), *map(_head_width, boxes)])
    lanes_up = _lanes(up)
    left = EDGE + _breadth(lanes_up)
    right = left + int(inner)
    lanes_down = _lanes(down)
    width = right + _breadth(lanes_down) + EDGE
    for lane in lanes_up:
        lane.x = left - STUB - LANE * lane.x
    for lane in lanes_down:
        lane.x = right + STUB + LANE * lane.x
    return MachinePicture(
        definition.name, width, top - GAP + EDGE, left, right, boxes, lanes_up, lanes_down, bool(now_in)
    )


def run_picture(line: MachineLine) -> MachinePicture | None:
    """Draw the machine of a run with the way of the run; None: no machine of this name is declared here."""
    definition = registry.about(line.run.timeline, line.run.entity_label)
    if definition is None or definition.machine is None:
        return None
    return machine_picture(definition, moves=line.moves, now_in=line.run.state)


def _timers(definition: Definition) -> dict[str, dict[str, str]]:
    """State → event → when a timer sends it there, in words."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for declared in definition.tasks.values():
        if declared.is_timer and declared.when is not None:
            for state in declared.when.during:
                found[state][declared.when.tells] = replace(declared.when, tells="").describe()
    return found


def _lines(
    definition: Definition, box: StateBox, row: Row, timers: Mapping[str, str], gone: Mapping[tuple[str, str], set[str]]
) -> list[EventLine]:
    shown = [
        (event, answer_in_words(edge.target) if isinstance(edge.target, TableAnswer) else str(edge.target), edge)
        for event, target in row.items()
        for edge in edges_of(target)
    ]
    # A timer may send an event that the state takes only by the row for all open states.
    shown += [(event, words := _("as any such state"), Edge(words)) for event in timers if event not in row]
    return [
        EventLine(
            event,
            target,
            timers.get(event, ""),
            box.top + HEAD + LINE * number + LINE // 2,
            _is_gone(
                box.state,
                edge.target,
                gone.get((box.state, event), set()),
                alone=len(edges_of(row.get(event, ""))) == 1,
            ),
            line_of(definition.titled(event), edge.told, definition.title_of(target) or target),
        )
        for number, (event, target, edge) in enumerate(shown)
    ]


def _is_gone(state: str, target: Target, came_to: set[str], *, alone: bool) -> bool:
    """Whether the run took a way. Of several for one event, those of BACK cannot be told from others that lead there."""
    if alone or target is BACK:
        return bool(came_to)
    return (state if target is STAY else target) in came_to


def _visit(box: StateBox, way: Sequence[MoveLine]) -> None:
    """Write down how often the run came to a state, and when it came there last."""
    entered = [move.at for move in way if move.to_state == box.state and box.kind != "any"]
    box.visits, box.last_at = len(entered), entered[-1] if entered else None


def _head_width(box: StateBox) -> float:
    return len(box.name) * (LETTER + 1) + 190


def _lanes(ways: Iterable[tuple[EventLine, StateBox]]) -> list[MachineLane]:
    """One lane for each target state; shorter lanes are nearer to the boxes. At first, ``x`` is the number of the lane."""
    stretches: dict[int, list[Stretch]] = defaultdict(list)
    for line, end in ways:
        stretches[end.middle].append(Stretch(line.middle, end.middle, line.is_gone))
    lanes = sorted(
        (MachineLane(0, 0, known) for known in stretches.values()), key=lambda lane: (lane.bottom - lane.top, lane.top)
    )
    taken: list[list[MachineLane]] = []
    for number, lane in enumerate(lanes):
        x = next((x for x, beside in enumerate(taken) if all(_are_apart(lane, other) for other in beside)), len(taken))
        taken += [[]] if x == len(taken) else []
        taken[x].append(lane)
        lane.x, lane.hue = x, number % HUES
    return lanes


def _are_apart(one: MachineLane, other: MachineLane) -> bool:
    return one.bottom + LINE < other.top or other.bottom + LINE < one.top


def _breadth(lanes: Sequence[MachineLane]) -> int:
    return STUB + LANE * (1 + max((lane.x for lane in lanes), default=-1)) if lanes else 0
