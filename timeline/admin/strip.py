"""The strips above the list: how many of the tasks it lists are due on each of 30 days, and in each hour of the day chosen."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import IntegerField, Subquery

from timeline.admin.asking import Question
from timeline.admin.days import bounds, hour_bounds
from timeline.lifecycle import FINAL, OPEN, WAITING, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.models.task import ScheduledTaskQuerySet

DAYS = 30
MAX_COUNTED = (
    500  # A day or an hour. Beyond it “500+” says enough, and a million tasks cost no more than fifteen thousand.
)
HEIGHT = 40
_AT_WORK = OPEN - WAITING
_GROUPS = (WAITING, _AT_WORK, frozenset({State.COMPLETED}), FINAL - {State.COMPLETED})


class Day(NamedTuple):
    """
    One day of the strip.

    Args:
        day: Of the site's zone.
        due: Tasks due then that the list shows, ``MAX_COUNTED`` at the most.
        is_more: Whether there are more than that.
        height: Of its bar, out of ``HEIGHT``.
        top: Where the bar begins.
        where: Address of the list of this day.
        is_chosen: Whether the list is of this day.
    """

    day: date
    due: int
    is_more: bool
    height: int
    top: int
    where: str
    is_chosen: bool


class Hour(NamedTuple):
    """
    One hour of the strip of a day.

    Args:
        hour: As the wall clock of the site's zone shows it.
        due, is_more, height, top, where, is_chosen: As of ``Day``.
    """

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


class _Count(Subquery):
    """Count the rows of a query that has a limit."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def strip_of(tasks: ScheduledTaskQuerySet, question: Question, *, now: datetime, zone: tzinfo) -> list[Day]:
    """Count what is asked for on each day, in one query that reads indexes and stops early."""
    today = now.astimezone(zone).date()
    first = today - timedelta(days=DAYS - 1) if question.looks_back else today
    days = [first + timedelta(days=number) for number in range(DAYS)]
    spans = [bounds(day, zone) for day in days]
    counts = _counts(replace(question, day=None).narrow(tasks, now=now, zone=zone), question.states, spans, now)
    found = []
    for day, bar in zip(days, _bars(counts), strict=True):
        chosen = question.day == day
        where = question.where(day=None if chosen else day, hour=None, after=None, before=None)
        found.append(Day(day, *bar, where, chosen))
    return found


def hours_of(tasks: ScheduledTaskQuerySet, question: Question, *, now: datetime, zone: tzinfo) -> list[Hour]:
    """Count what is asked for in each hour of the day chosen, as ``strip_of`` does; no day chosen: none."""
    if question.day is None:
        return []
    spans = {hour: hour_bounds(question.day, hour, zone) for hour in range(24)}
    spans = {hour: (begin, end) for hour, (begin, end) in spans.items() if begin < end}
    narrowed = replace(question, day=None, hour=None).narrow(tasks, now=now, zone=zone)
    counts = _counts(narrowed, question.states, list(spans.values()), now)
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


def _counts(
    tasks: ScheduledTaskQuerySet, states: frozenset[State], spans: list[tuple[datetime, datetime]], now: datetime
) -> list[int]:
    """
    Count each span apart, and in it groups of states. Open tasks that do not wait were due by now: spans ahead have none.

    Asked for all open states at once, or for all that are final, PostgreSQL 15 leaves out the states, as the index has no
    others, and reads it from its beginning for each span.
    """
    asked = [
        (number, sorted(group & states))
        for number, (begin, _end) in enumerate(spans)
        for group in _GROUPS
        if group & states and (begin <= now or group != _AT_WORK)
    ]
    columns: dict[str, Any] = {}
    for place, (number, some) in enumerate(asked):
        due = tasks.filter(state__in=some).due_between(*spans[number])
        columns[f"count_{place}"] = _Count(due.order_by().values("scheduled_at")[: MAX_COUNTED + 1])
    counts = [0] * len(spans)
    if not columns:
        return counts
    once = tasks.model._base_manager.using(tasks.db).order_by()[:1]
    [row] = list(once.annotate(**columns).values_list(*columns)) or [[0] * len(asked)]
    for (number, _states), count in zip(asked, row, strict=True):
        counts[number] += count
    return counts
