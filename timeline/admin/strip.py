"""The strips above the list: how many of the tasks it lists are due on each of 30 days, and in each hour of the day chosen."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from timeline.admin.list_query import Question, bounds, hour_bounds
from timeline.reading.tallies import Amount
from timeline.store.counts import counts_in
from timeline.timing import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from timeline.models.task import ScheduledTaskQuerySet

DAYS = 30
MAX_COUNTED = (
    500  # A day or an hour. Beyond it “500+” says enough, and a million tasks cost no more than fifteen thousand.
)
HEIGHT = 40


class Day(NamedTuple):
    """One day of the strip, in the site's zone: ``due`` tasks up to ``MAX_COUNTED``, and its bar out of ``HEIGHT``."""

    day: date
    due: int
    is_more: bool
    height: int
    top: int
    where: str
    is_chosen: bool


class Strip(NamedTuple):
    """
    The days; and how many tasks are asked for, whatever day they are due, up to ``MAX_COUNTED``. None: it was not counted. No
    index has a state together with the kind of entity: to find so many of a rare kind, all rows might be read.
    """

    days: list[Day]
    total: Amount | None


class Hour(NamedTuple):
    """One hour of a day, as the site's wall clock shows it; else as ``Day``."""

    hour: int
    due: int
    is_more: bool
    height: int
    top: int
    where: str
    is_chosen: bool

    @property
    def said(self) -> str:
        """From when to when."""
        return hour_in_words(self.hour)


def hour_in_words(hour: int) -> str:
    """From when to when: ``09:00–10:00``."""
    return f"{hour:02}:00–{hour + 1:02}:00"


def strip_of(
    tasks: ScheduledTaskQuerySet,
    question: Question,
    *,
    now: datetime,
    zone: tzinfo,
    kinds: Callable[[], Collection[str]],
) -> Strip:
    """Count what is asked for on each day, in one query that reads indexes and stops early; ``kinds`` as of ``page_of``."""
    today = now.astimezone(zone).date()
    first = today - timedelta(days=DAYS - 1) if question.looks_back else today
    days = [first + timedelta(days=number) for number in range(DAYS)]
    spans = [bounds(day, zone) for day in days]
    narrowed = replace(question, day=None).narrow(tasks, now=now, zone=zone)
    ever = [] if question.kind else [(EARLIEST, LATEST)]
    counts = counts_in(narrowed, question.states, [*spans, *ever], MAX_COUNTED, now=now, kinds=kinds)
    total = counts[DAYS] if ever else None
    found = []
    for day, bar in zip(days, _bars(counts[:DAYS]), strict=True):
        chosen = question.day == day
        where = question.where(day=None if chosen else day, hour=None, after=None, before=None)
        found.append(Day(day, *bar, where, chosen))
    return Strip(found, None if total is None else Amount(min(total, MAX_COUNTED), total > MAX_COUNTED))


def hours_of(
    tasks: ScheduledTaskQuerySet,
    question: Question,
    *,
    now: datetime,
    zone: tzinfo,
    kinds: Callable[[], Collection[str]],
) -> list[Hour]:
    """Count what is asked for in each hour of the day chosen, as ``strip_of`` does; no day chosen: none."""
    if question.day is None:
        return []
    spans = {hour: hour_bounds(question.day, hour, zone) for hour in range(24)}
    spans = {hour: (begin, end) for hour, (begin, end) in spans.items() if begin < end}
    narrowed = replace(question, day=None, hour=None).narrow(tasks, now=now, zone=zone)
    counts = counts_in(narrowed, question.states, list(spans.values()), MAX_COUNTED, now=now, kinds=kinds)
    found = []
    for hour, bar in zip(spans, _bars(counts), strict=True):
        chosen = question.hour == hour
        where = question.where(hour=None if chosen else hour, after=None, before=None)
        found.append(Hour(hour, *bar, where, chosen))
    return found


def _bars(counts: list[int]) -> Iterator[tuple[int, bool, int, int]]:
    """Of each count: what is shown of it, whether that is not all, how high its bar is, and where it begins."""
    most = min(max([*counts, 1]), MAX_COUNTED)
    for count in counts:
        shown = min(count, MAX_COUNTED)
        height = max(round(HEIGHT * shown / most), 2 if count else 0)
        yield shown, count > MAX_COUNTED, height, HEIGHT - height
