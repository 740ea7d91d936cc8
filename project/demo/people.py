"""Who signs up in the demo, and what each does on which day of the trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count as numbers
from itertools import islice
from typing import Final, Literal

Action = Literal["pay", "extend", "close", "call"]

# What people do: day after sign-up → action. "call" is the chat script on their website.
_HABITS: Final[tuple[tuple[str, tuple[tuple[float, Action], ...]], ...]] = (
    ("never pays, and the script stays in", ((5, "call"), (31, "call"))),
    ("pays on day 3", ((3, "pay"),)),
    ("pays on day 27, after the reminder", ((27, "pay"),)),
    ("closes the trial on day 12", ((12, "close"),)),
    ("extends on day 20, then never pays", ((20, "extend"),)),
    ("never pays, and takes the script out", ((4, "call"),)),
    ("pays on day 31, when the trial is over", ((31, "pay"),)),
    ("extends on day 20 and pays on day 36", ((20, "extend"), (36, "pay"))),
)

_NAMES: Final = ("ada", "ben", "cleo", "dan", "eva", "finn", "gia", "hugo", "ines", "jon", "kira", "leo", "mia", "noah")

FULL: Final = "full.example.com"  # Where each mailbox is full.
FULL_ONES: Final = 7  # Each seventh of those who come later is there.


@dataclass(frozen=True, slots=True)
class Person:
    """
    Someone who signs up.

    Args:
        email, website: What they type into the form.
        habit: What they do, in words.
        actions: Day after sign-up → what they do then.
    """

    email: str
    website: str
    habit: str
    actions: tuple[tuple[float, Action], ...]


def people(count: int) -> Iterator[Person]:
    """Make so many people; the first few show every habit."""
    return (_person(number) for number in range(count))


def newcomers(after: int) -> Iterator[Person]:
    """Make people without end, who come after so many others. The mailbox of some is full, and takes nothing."""
    for number in numbers(after):
        person = _person(number)
        is_full = (number - after) % FULL_ONES == 0
        yield replace(person, email=f"{person.email.partition('@')[0]}@{FULL}") if is_full else person


def crowd(count: int) -> list[Person]:
    """Make so many people: first those who show every habit, then others, of whom some have a full mailbox."""
    first = list(people(min(count, len(_HABITS))))
    return [*first, *islice(newcomers(len(first)), count - len(first))]


def _person(number: int) -> Person:
    name = _NAMES[number % len(_NAMES)] + ("" if number < len(_NAMES) else str(number // len(_NAMES) + 1))
    habit, actions = _HABITS[number % len(_HABITS)]
    return Person(f"{name}@example.com", f"{name}.example.com", habit, actions)
