"""The parts of a picture of a timeline, in pixels: cards, chips, axes; and how texts and chips get their places."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Final, NamedTuple

EDGE: Final = 10  # Margin around the drawing, in pixels, as all numbers below.
CARD: Final = 320  # Width of a card.
PAD: Final = 12  # Margin within a card, and within a chip.
TITLE: Final = 17  # Height of a line of a title.
LINE: Final = 15  # Height of a line of another text.
GAP: Final = 14  # Distance between two cards.
INDENT: Final = 30  # Indent of a follower at the same time.
AXIS: Final = 30  # Height of an axis with its words.
HEAD: Final = 26  # Height of the title above an axis.
CHIP: Final = 24  # Height of a chip.
BESIDE: Final = 6  # Distance between two chips.
LETTER: Final = 6.3  # Approximate width of a letter,
BOLD: Final = 7.7  # of a letter in a title,
SMALL_BOLD: Final = 6.9  # of a letter in a chip,
WORD: Final = 8.4  # and of a letter in the word before chips.
# Signs of kinds, as paths. As letters, an hourglass, a turning arrow and a clock would be missing in some fonts.
SIGNS: Final = {
    "wait": "M-10 -11h9M-10 0h9M-9 -11v2l3.5 3.5l-3.5 3.5v2M-2 -11v2l-3.5 3.5l3.5 3.5v2",
    "series": "M-1.6 -8.2a4.7 4.7 0 1 0 0.8 4.2M-1.3 -11v3.2h-3.2",
    "timer": "M-1 -5.5a4.7 4.7 0 1 1 -9.4 0a4.7 4.7 0 1 1 9.4 0M-5.7 -8.4v2.9l2 1.2",
}
WORDS: Final = {"each": "×n"}  # Signs that are text.


@dataclass(slots=True)
class Chip:
    """A short text, which may be a link; ``kind`` gives its colour, ``said`` is for screen readers, empty: the same text."""

    text: str
    kind: str
    url: str = ""
    said: str = ""
    x: int = 0
    y: int = 0
    width: int = 0

    @property
    def text_x(self) -> int:
        return self.x + self.width // 2

    @property
    def text_y(self) -> int:
        return self.y + CHIP // 2 + 4


class TextLine(NamedTuple):
    """A line of text: ``kind`` is ``title``, ``key``, ``when``, ``guard`` or ``doc``."""

    kind: str
    text: str
    y: int


@dataclass(slots=True)
class Card:
    """A task: ``kind`` is ``task``, ``wait``, ``series``, ``each`` or ``timer``; ``chips`` are the counts of its rows."""

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
        """The vertical place where a line comes in."""
        return self.y + 20

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def stem(self) -> int:
        """The horizontal place where lines to its followers begin."""
        return self.x + INDENT // 2

    @property
    def text_x(self) -> int:
        return self.x + PAD

    @property
    def width(self) -> int:
        return CARD

    @property
    def sign(self) -> str:
        """The path of the sign for its kind, drawn from its right end; empty: none is drawn."""
        return SIGNS.get(self.kind, "")

    @property
    def sign_word(self) -> str:
        """The text that is its sign; empty: there is none."""
        return WORDS.get(self.kind, "")

    @property
    def sign_x(self) -> int:
        return self.x + CARD - PAD + 2

    @property
    def sign_y(self) -> int:
        return self.y + PAD + TITLE - 4


class FollowerLine(NamedTuple):
    """The line from a card down to a follower."""

    x: int
    top: int
    bottom: int
    right: int


class AxisMark(NamedTuple):
    """A time on an axis. Its line goes down to the last card that begins at this time."""

    x: int
    text: str
    is_anchor: bool
    bottom: int


@dataclass(slots=True)
class Band:
    """An axis with its cards; ``y`` is the top of the title, ``axis`` that of the axis, ``right`` its right end."""

    title: str
    y: int
    marks: list[AxisMark]
    right: int

    @property
    def title_y(self) -> int:
        return self.y + 17

    @property
    def axis(self) -> int:
        return self.y + HEAD + AXIS - 8

    @property
    def mark_y(self) -> int:
        return self.axis - 8


@dataclass(slots=True)
class Row:
    """A row about starts or exits of runs: a word, with chips beside and below it."""

    word: str
    y: int
    chips: list[Chip]

    @property
    def word_y(self) -> int:
        return self.y + CHIP // 2 + 4


@dataclass(slots=True)
class TimelinePicture:
    """A whole drawing, in pixels; no chips in ``exits``: there are no exits."""

    name: str
    width: int
    height: int
    starts: Row
    exits: Row
    bands: list[Band]
    cards: list[Card]
    edges: list[FollowerLine]


def wrapped(text: str, letter: float, most: int | None = None) -> list[str]:
    """Break a text into lines that fit into a card, ``most`` of them at most."""
    return wrap(text, int((CARD - 2 * PAD) / letter), break_on_hyphens=False, max_lines=most, placeholder=" …")


def place(chips: Iterable[Chip], left: int, top: int, right: int) -> int:
    """Put chips side by side, and in a new line if there is no room. Gives the bottom of the last line."""
    x = left
    for chip in chips:
        chip.width = int(len(chip.text) * SMALL_BOLD) + 2 * PAD
        if x > left and x + chip.width > right:
            x, top = left, top + CHIP + BESIDE
        chip.x, chip.y = x, top
        x += chip.width + BESIDE
    return top + CHIP


def flow(row: Row, inner: int) -> int:
    """Give the chips of a row their places beside its word. Gives the bottom of the row."""
    left = EDGE + int(len(row.word) * WORD) + PAD
    return place(row.chips, left, row.y, EDGE + inner)
