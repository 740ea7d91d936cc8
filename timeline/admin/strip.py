"""The strip above the list: how many open tasks are due on each of the next 30 days."""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import IntegerField, Subquery

from timeline.admin.asking import OPEN_ONES, Question
from timeline.admin.days import bounds
from timeline.lifecycle import OPEN, WAITING

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

DAYS = 30
MOST = 500  # Counted on one day; beyond it “500+” says enough, and a million tasks cost no more than fifteen thousand.
HEIGHT = 40


class Day(NamedTuple):
    """
    One day of the strip.

    Args:
        day: Of the site's zone.
        due: Open tasks due then, ``MOST`` at the most.
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


class _Count(Subquery):
    """Count the rows of a query that has a limit."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()


def strip_of(tasks: ScheduledTaskQuerySet, question: Question, *, now: datetime, zone: tzinfo) -> list[Day]:
    """Count what is open and asked for on each day, in one query that reads indexes and stops early."""
    today = now.astimezone(zone).date()
    days = [today + timedelta(days=number) for number in range(DAYS)]
    counts = _counts(tasks, question, days, zone)
    most = max(*counts, 1)
    found = []
    for day, count in zip(days, counts, strict=True):
        height = max(round(HEIGHT * min(count, MOST) / min(most, MOST)), 2 if count else 0)
        chosen = question.day == day
        where = question.where(day=None if chosen else day, state=OPEN_ONES, after=None, before=None)
        found.append(Day(day, min(count, MOST), count > MOST, height, HEIGHT - height, where, chosen))
    return found


def _counts(tasks: ScheduledTaskQuerySet, question: Question, days: list[date], zone: tzinfo) -> list[int]:
    """
    Count each day apart, and in it those that wait. What does not wait any more was due by now, so only today has any.

    Asked for all open states at once, PostgreSQL 15 leaves out the states, as the index has no others, and reads it from its
    beginning for each day.
    """
    asked = [(number, sorted(WAITING)) for number in range(len(days))] + [(0, sorted(OPEN - WAITING))]
    columns: dict[str, Any] = {}
    for place, (number, states) in enumerate(asked):
        due = question.narrow_kind(tasks.filter(state__in=states).due_between(*bounds(days[number], zone)))
        columns[f"count_{place}"] = _Count(due.order_by().values("scheduled_at")[: MOST + 1])
    [row] = list(tasks.order_by().annotate(**columns).values_list(*columns)[:1]) or [[0] * len(asked)]
    counts = [0] * len(days)
    for (number, _states), count in zip(asked, row, strict=True):
        counts[number] += count
    return counts
