"""``daily`` and its kin: starts by the clock."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Final, Literal
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.translation import gettext as _

from timeline.features.recurring.slots import DayOfMonth, DaysOfWeek, EveryDay, Slot, Slots, in_words, slots_of
from timeline.timing.keywords import known_keywords
from timeline.timing.offsets import Problem

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition

Overlap = Literal["skip", "queue", "allow"]
CatchUp = Literal["latest", "none", "all"]
Period = Literal["", "day", "week", "month"]

A_DAY: Final = timedelta(days=1)
LONGEST: Final = timedelta(days=366)
WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

SLOT_KEY: Final = r"^\d{4}-\d\d-\d\d(T\d\d:\d\dZ)?$"  # What keys of slots look like, see ``Recurring.key_of``.

_TIME: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\Z")


@dataclass(frozen=True)
class Recurring:
    """
    A start of its own: a time has come. Made by ``hourly``, ``daily``, ``weekly``, ``monthly`` and ``cron``.

    Args:
        word: As it was written, for people.
        slots: When it comes; None: that is one of the problems.
        zone: Name of the time zone whose wall clock it is; empty: the site's.
        once_per: The period of which there is one run; empty: of each slot.
        catch_up: Which missed slots are made up for.
        within: How long ago they may be.
        problems: What is wrong, each with its remedy.
    """

    word: str
    slots: Slots | None
    zone: str
    once_per: Period
    overlap: Overlap
    catch_up: CatchUp
    within: timedelta
    problems: tuple[Problem, ...] = ()

    @property
    def timezone(self) -> tzinfo:
        return ZoneInfo(self.zone) if self.zone else timezone.get_default_timezone()

    def describe(self, definition: Definition | None = None) -> str:  # noqa: ARG002 (as other starts do)
        """When it comes, in words: ``every day at 02:00 in Europe/Berlin``."""
        if self.slots is None:
            return self.word
        return _("%(slots)s in %(zone)s") % {"slots": in_words(self.slots), "zone": self.timezone}

    def problems_of(self, definition: Definition) -> Iterator[Problem]:
        """What is wrong with it in this timeline, each with its remedy."""
        yield from self.problems
        if definition.label:
            yield (
                f"starts on {self.word}, and has an entity: of which would it start a run?",
                "Leave the entity out, and let its handler find whom it is about.",
            )
        if definition.once:
            yield f"starts on {self.word}, and has once.", "Leave once out: each slot begins one run ever."
        if sum(isinstance(other, Recurring) for other in definition.starts_on) > 1:
            yield "starts by the clock in two ways.", "Put both into one cron(…), or declare two timelines."

    def key_of(self, slot: Slot) -> str:
        """Make the key of a slot's run: its moment in UTC, or the first day of its period. A later slot has no lesser key."""
        if not self.once_per:
            return f"{slot.at:%Y-%m-%dT%H:%MZ}"
        first: dict[str, date] = {
            "day": slot.day,
            "week": slot.day - timedelta(days=slot.day.weekday()),
            "month": slot.day.replace(day=1),
        }
        return first[self.once_per].isoformat()

    def is_slot(self, at: datetime, key: str) -> bool:
        """Whether there is a slot of this key at this moment."""
        if self.slots is None:
            return False
        slot = self.slots.after(at - timedelta(microseconds=1), self.timezone)
        return slot.at == at and self.key_of(slot) == key


@known_keywords
def daily(
    at: str,
    *,
    zone: str = "",
    once_per: Period = "",
    overlap: Overlap = "skip",
    catch_up: CatchUp = "latest",
    within: timedelta = A_DAY,
) -> Recurring:
    """
    Start a run each day. The next one is always there as rows, which people can move and cancel.

    Args:
        at: On the wall clock, ``"02:00"``. If a clock change skips it, as much later; if it comes twice, the first.
        zone: Name of a time zone, ``"Europe/Berlin"``; left out: the site's.
        once_per: ``"day"``, ``"week"`` or ``"month"``: one run in each, even if ``at`` is changed. Left out: one for each slot.
        overlap: While an earlier run is still open: ``"skip"``, the run is cancelled (``overlap``); ``"queue"``, it waits
            until that has ended; or ``"allow"``.
        catch_up: Which slots that came while nobody polled run later: the ``"latest"``, ``"none"`` or ``"all"``, the
            newest thousand at most. The others leave one cancelled row (``expired``) that names their range.
        within: How long ago they may be; 366 days at most.
    """
    times, problems = _times_of(at, f"daily({at!r})")
    slots = Slots(EveryDay(), times)
    return _recurring(f"daily({at!r})", slots, problems, zone, once_per, overlap, catch_up, within)


@known_keywords
def hourly(
    minute: int = 0,
    *,
    zone: str = "",
    once_per: Period = "",
    overlap: Overlap = "skip",
    catch_up: CatchUp = "latest",
    within: timedelta = A_DAY,
) -> Recurring:
    """
    Start a run at this minute (0 to 59) of each hour that passes, also of both that the wall clock shows alike. Otherwise
    as ``daily``.
    """
    word, problems = f"hourly({minute!r})", ()
    if type(minute) is not int or not 0 <= minute <= 59:
        problem = (f"has {word}.", "Give a whole number from 0 to 59.")
        return _recurring(word, None, (problem,), zone, once_per, overlap, catch_up, within)
    slots = Slots(EveryDay(), tuple(time(hour, minute) for hour in range(24)), any_hour=True)
    return _recurring(word, slots, problems, zone, once_per, overlap, catch_up, within)


@known_keywords
def weekly(
    at: str,
    *,
    zone: str = "",
    once_per: Period = "",
    overlap: Overlap = "skip",
    catch_up: CatchUp = "latest",
    within: timedelta = A_DAY,
) -> Recurring:
    """Start a run on some days of each week: ``"mon 06:00"``, ``"mon,thu 06:00"``. Otherwise as ``daily``."""
    word = f"weekly({at!r})"
    days, _blank, clock = at.partition(" ") if isinstance(at, str) else ("", "", "")
    times, problems = _times_of(clock, word)
    names = days.lower().split(",")
    if problems or not set(names) <= set(WEEKDAYS):
        problem = (f"has {word}.", f"Name days and a time: weekly('mon,thu 06:00'), of {', '.join(WEEKDAYS)}.")
        return _recurring(word, None, (problem,), zone, once_per, overlap, catch_up, within)
    slots = Slots(DaysOfWeek(frozenset(map(WEEKDAYS.index, names))), times)
    return _recurring(word, slots, (), zone, once_per, overlap, catch_up, within)


@known_keywords
def monthly(
    day: int,
    at: str,
    *,
    zone: str = "",
    once_per: Period = "",
    overlap: Overlap = "skip",
    catch_up: CatchUp = "latest",
    within: timedelta = A_DAY,
) -> Recurring:
    """Start a run on a day (1 to 31) of each month; of a month that lacks it, on the last. Otherwise as ``daily``."""
    word = f"monthly({day!r}, {at!r})"
    times, problems = _times_of(at, word)
    if type(day) is not int or not 1 <= day <= 31:
        problems = ((f"has {word}.", "Give a day from 1 to 31 and a time: monthly(1, '00:00')."),)
    slots = None if problems else Slots(DayOfMonth(day), times)
    return _recurring(word, slots, problems, zone, once_per, overlap, catch_up, within)


@known_keywords
def cron(
    expression: str,
    *,
    zone: str = "",
    once_per: Period = "",
    overlap: Overlap = "skip",
    catch_up: CatchUp = "latest",
    within: timedelta = A_DAY,
) -> Recurring:
    """
    Start a run when an expression of five fields says so: ``"*/15 8-18 * * mon-fri"``. Needs the extra ``cron``.

    Otherwise as ``daily``, or, where the hour begins with ``*``, as ``hourly``.
    """
    slots, problems = slots_of(expression)
    return _recurring(f"cron({expression!r})", slots, problems, zone, once_per, overlap, catch_up, within)


def _times_of(at: object, word: str) -> tuple[tuple[time, ...], tuple[Problem, ...]]:
    found = _TIME.match(at) if isinstance(at, str) else None
    if found is None:
        return (), ((f"has {word}.", "Give hours and minutes, from '00:00' to '23:59'."),)
    return (time(int(found[1]), int(found[2])),), ()


def _recurring(
    word: str,
    slots: Slots | None,
    problems: tuple[Problem, ...],
    zone: str,
    once_per: Period,
    overlap: Overlap,
    catch_up: CatchUp,
    within: timedelta,
) -> Recurring:
    wrong = list(problems)
    if zone != "" and not _is_zone(zone):
        wrong.append((f"has {word} in the zone {zone!r}, which is not known.", 'Name one, like "Europe/Berlin".'))
    for name, given, known in (
        ("once_per", once_per, ("", "day", "week", "month")),
        ("overlap", overlap, ("skip", "queue", "allow")),
        ("catch_up", catch_up, ("latest", "none", "all")),
    ):
        if given not in known:
            wrong.append((f"has {word} with {name}={given!r}.", f"Use one of {', '.join(map(repr, known))}."))
    if not isinstance(within, timedelta) or not timedelta(0) < within <= LONGEST:
        wrong.append((f"has {word} with within={within!r}.", "Use a positive timedelta, 366 days at most."))
    if (overlap, catch_up) == ("skip", "all"):
        problem = f"has {word} with catch_up='all' and overlap='skip': of all that it made up for, it would skip what overlaps."
        wrong.append((problem, "Give overlap='queue' or 'allow', or catch_up='latest'."))
    return Recurring(word, slots, zone, once_per, overlap, catch_up, within, tuple(wrong))


def _is_zone(name: object) -> bool:
    try:
        return isinstance(name, str) and ZoneInfo(name) is not None
    except (KeyError, ValueError, OSError):
        return False
