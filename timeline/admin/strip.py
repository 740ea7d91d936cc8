"""The strip above the list: how many of the tasks it lists are due on each of 30 days."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import IntegerField, Subquery

from timeline.admin.asking import Question
from timeline.admin.days import bounds
from timeline.lifecycle import FINAL, OPEN, WAITING, State

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

DAYS = 30
MAX_COUNTED_A_DAY = 500  # Beyond it “500+” says enough, and a million tasks cost no more than fifteen thousand.
HEIGHT = 40
_AT_WORK = OPEN - WAITING
_GROUPS = (WAITING, _AT_WORK, frozenset({State.COMPLETED}), FINAL - {State.COMPLETED})


class Day(NamedTuple):
    """
    One day of the strip.

    Args:
        day: Of the site's zone.
        due: Tasks due then that the list shows, ``MAX_COUNTED_A_DAY`` at the most.
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
    """Count what is asked for on each day, in one query that reads indexes and stops early."""
    today = now.astimezone(zone).date()
    first = today - timedelta(days=DAYS - 1) if question.looks_back else today
    days = [first + timedelta(days=number) for number in range(DAYS)]
    counts = _counts(replace(question, day=None).narrow(tasks, now=now, zone=zone), question.states, days, today, zone)
    most = max(*counts, 1)
    found = []
    for day, count in zip(days, counts, strict=True):
        height = max(round(HEIGHT * min(count, MAX_COUNTED_A_DAY) / min(most, MAX_COUNTED_A_DAY)), 2 if count else 0)
        chosen = question.day == day
        where = question.where(day=None if chosen else day, after=None, before=None)
        found.append(
            Day(day, min(count, MAX_COUNTED_A_DAY), count > MAX_COUNTED_A_DAY, height, HEIGHT - height, where, chosen)
        )
    return found


def _counts(
    tasks: ScheduledTaskQuerySet, states: frozenset[State], days: list[date], today: date, zone: tzinfo
) -> list[int]:
    """
    Count each day apart, and in it groups of states. Open tasks that do not wait were due by now: days ahead have none.

    Asked for all open states at once, or for all that are final, PostgreSQL 15 leaves out the states, as the index has no
    others, and reads it from its beginning for each day.
    """
    asked = [
        (number, sorted(group & states))
        for number, day in enumerate(days)
        for group in _GROUPS
        if group & states and (day <= today or group != _AT_WORK)
    ]
    columns: dict[str, Any] = {}
    for place, (number, some) in enumerate(asked):
        due = tasks.filter(state__in=some).due_between(*bounds(days[number], zone))
        columns[f"count_{place}"] = _Count(due.order_by().values("scheduled_at")[: MAX_COUNTED_A_DAY + 1])
    once = tasks.model._base_manager.using(tasks.db).order_by()[:1]
    [row] = list(once.annotate(**columns).values_list(*columns)) or [[0] * len(asked)]
    counts = [0] * len(days)
    for (number, _states), count in zip(asked, row, strict=True):
        counts[number] += count
    return counts
