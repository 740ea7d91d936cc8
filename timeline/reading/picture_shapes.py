"""What a picture of a timeline is made of, in pixels: cards, chips, axes; and how texts and chips find their places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Final, NamedTuple

EDGE: Final = 10  # Around all, in pixels, as all that follows.
CARD: Final = 320  # Width of a task.
PAD: Final = 12  # Within a card, and in a chip.
TITLE: Final = 17  # Height of a line of a title,
LINE: Final = 15  # and of any other text.
GAP: Final = 14  # Between two cards.
INDENT: Final = 30  # Of what follows at the same time.
AXIS: Final = 30  # Height of an axis with its words.
HEAD: Final = 26  # Of what is said above an axis.
CHIP: Final = 24  # Height of a chip.
BESIDE: Final = 6  # Between two chips.
LETTER: Final = 6.3  # About the width of one,
BOLD: Final = 7.7  # in a title,
SMALL_BOLD: Final = 6.9  # in a chip,
WORD: Final = 8.4  # and of what stands before chips.
# Signs of kinds, as paths: an hourglass, a turning arrow and a clock would be letters that not each font has.
SIGNS: Final = {
    "wait": "M-10 -11h9M-10 0h9M-9 -11v2l3.5 3.5l-3.5 3.5v2M-2 -11v2l-3.5 3.5l3.5 3.5v2",
    "series": "M-1.6 -8.2a4.7 4.7 0 1 0 0.8 4.2M-1.3 -11v3.2h-3.2",
    "timer": "M-1 -5.5a4.7 4.7 0 1 1 -9.4 0a4.7 4.7 0 1 1 9.4 0M-5.7 -8.4v2.9l2 1.2",
}
WORDS: Final = {"each": "×n"}  # And those that are written.


@dataclass(slots=True)
class Chip:
    """
    A short text that may lead somewhere.

    Args:
        text: What it says.
        kind: What it is about, for its colour.
        url: Where it leads; empty: nowhere.
        said: The same for those who hear it; empty: the text.
        x, y, width: Where it stands.
    """

    text: str
    kind: str
    url: str = ""
    said: str = ""
    x: int = 0
    y: int = 0
    width: int = 0

    @property
    def text_x(self) -> int:
        """The middle of its text."""
        return self.x + self.width // 2

    @property
    def text_y(self) -> int:
        """The line that its text stands on."""
        return self.y + CHIP // 2 + 4


class TextLine(NamedTuple):
    """A line of text: ``kind`` is ``title``, ``key``, ``when``, ``guard`` or ``doc``."""

    kind: str
    text: str
    y: int


@dataclass(slots=True)
class Card:
    """
    A task.

    Args:
        name: Of the task.
        title: What people call it, whole.
        kind: ``task``; ``wait``, ``series``, ``each`` or ``timer``.
        x, y, height: Where it stands.
        lines: What it says.
        chips: Its counts.
    """

    name: str
    title: str
    kind: str
    x: int
    y: int
    height: int = 0
    lines: list[TextLine] = field(default_factory=list)
    chips: list[Chip] = field(default_factory=list)

    @property
    def middle(self) -> int:
        """How far down a line comes in."""
        return self.y + 20

    @property
    def bottom(self) -> int:
        """Its lower end."""
        return self.y + self.height

    @property
    def stem(self) -> int:
        """Where lines to its followers begin."""
        return self.x + INDENT // 2

    @property
    def text_x(self) -> int:
        """Where its texts begin."""
        return self.x + PAD

    @property
    def width(self) -> int:
        """All are as wide."""
        return CARD

    @property
    def sign(self) -> str:
        """The path that tells its kind at first sight, from the place where it ends; empty: none is drawn."""
        return SIGNS.get(self.kind, "")

    @property
    def sign_word(self) -> str:
        """What is written instead; empty: nothing is."""
        return WORDS.get(self.kind, "")

    @property
    def sign_x(self) -> int:
        """Where its sign ends."""
        return self.x + CARD - PAD + 2

    @property
    def sign_y(self) -> int:
        """The line that its sign stands on."""
        return self.y + PAD + TITLE - 4


class Edge(NamedTuple):
    """The line from a task down to one that follows it."""

    x: int
    top: int
    bottom: int
    right: int


class Mark(NamedTuple):
    """A time on an axis, down to where the last card begins that stands at it."""

    x: int
    text: str
    is_anchor: bool
    bottom: int


@dataclass(slots=True)
class Band:
    """
    An axis with what stands on it.

    Args:
        title: What its times count from.
        y: Where its head begins; the axis is at ``axis``.
        marks: Its times, from the left to the right; none where there is no time.
        right: Where the axis ends.
    """

    title: str
    y: int
    marks: list[Mark]
    right: int

    @property
    def title_y(self) -> int:
        """The line that its title stands on."""
        return self.y + 17

    @property
    def axis(self) -> int:
        """Where the axis runs."""
        return self.y + HEAD + AXIS - 8

    @property
    def mark_y(self) -> int:
        """The line that its times stand on."""
        return self.axis - 8


@dataclass(slots=True)
class Row:
    """What starts or ends runs: a word, and chips beside and below it."""

    word: str
    y: int
    chips: list[Chip]

    @property
    def word_y(self) -> int:
        """The line that the word stands on."""
        return self.y + CHIP // 2 + 4


@dataclass(slots=True)
class TimelinePicture:
    """
    A whole drawing, in pixels.

    Args:
        name: Of the timeline.
        width, height: Of all.
        starts, exits: What begins a run, and what ends it; no chips in ``exits``: nothing does from outside.
        bands: One axis below the other.
        cards, edges: What stands on them.
    """

    name: str
    width: int
    height: int
    starts: Row
    exits: Row
    bands: list[Band]
    cards: list[Card]
    edges: list[Edge]


def wrapped(text: str, letter: float, most: int | None = None) -> list[str]:
    """Break a text into lines that a card has room for, so many at most."""
    return wrap(text, int((CARD - 2 * PAD) / letter), break_on_hyphens=False, max_lines=most, placeholder=" …")


def place(chips: Iterable[Chip], left: int, top: int, right: int) -> int:
    """Put chips side by side, and below each other where there is no room; gives where they end."""
    x = left
    for chip in chips:
        chip.width = int(len(chip.text) * SMALL_BOLD) + 2 * PAD
        if x > left and x + chip.width > right:
            x, top = left, top + CHIP + BESIDE
        chip.x, chip.y = x, top
        x += chip.width + BESIDE
    return top + CHIP


def flow(row: Row, inner: int) -> int:
    """Give the chips of a row their places, beside its word."""
    left = EDGE + int(len(row.word) * WORD) + PAD
    return place(row.chips, left, row.y, EDGE + inner)
