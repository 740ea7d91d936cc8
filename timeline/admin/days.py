"""Days and hours of the site's time zone, and the bands of the list."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from django.utils.formats import get_format
from django.utils.translation import pgettext_lazy

from timeline.conf import get_settings
from timeline.lifecycle import FINAL, State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django_stubs_ext import StrPromise

    from timeline.models import ScheduledTask


class Band(NamedTuple):
    """Rows of one page that belong together."""

    name: str
    title: StrPromise
    tasks: list[ScheduledTask]


# In the order in which the list of what is open shows them.
_TITLES: dict[str, StrPromise] = {
    "overdue": pgettext_lazy("timeline", "Overdue"),
    "now": pgettext_lazy("timeline", "Now"),
    "today": pgettext_lazy("timeline", "Today"),
    "tomorrow": pgettext_lazy("timeline", "Tomorrow"),
    "week": pgettext_lazy("timeline", "This week"),
    "later": pgettext_lazy("timeline", "Later"),
    "yesterday": pgettext_lazy("timeline", "Yesterday"),
    "earlier": pgettext_lazy("timeline", "Earlier"),
}


def bounds(day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """When a day begins and ends there, in UTC."""
    first, last = (datetime.combine(it, time.min, tzinfo=zone) for it in (day, day + timedelta(days=1)))
    return first.astimezone(UTC), last.astimezone(UTC)


def hour_bounds(day: date, hour: int, zone: tzinfo) -> tuple[datetime, datetime]:
    """
    When an hour of the wall clock begins and ends there, in UTC; the hours of a day cover it, none twice. An hour that the
    clock shows twice is as long as both; one that it passes over is empty.
    """
    first, last = bounds(day, zone)
    midnight = datetime.combine(day, time.min, tzinfo=zone)
    begin, end = ((midnight + timedelta(hours=number)).astimezone(UTC) for number in (hour, hour + 1))
    return min(max(begin, first), last), min(max(end, first), last)


def is_overdue(task: ScheduledTask, now: datetime) -> bool:
    """Whether it is due for longer than two polls, and nobody runs it."""
    return task.is_open and task.state != State.ACTIVE and task.scheduled_at <= now - get_settings().overdue_after


def in_bands(tasks: Iterable[ScheduledTask], *, now: datetime, zone: tzinfo) -> list[Band]:
    """Put the tasks of a page, given in order of their time, into bands; within one their order stays."""
    found: dict[str, Band] = {}
    for task in tasks:
        name = _band(task, now, zone)
        found.setdefault(name, Band(name, _TITLES[name], [])).tasks.append(task)
    bands = list(found.values())
    return sorted(bands, key=lambda band: band.name != "overdue")


def _band(task: ScheduledTask, now: datetime, zone: tzinfo) -> str:
    if is_overdue(task, now):
        return "overdue"
    if task.state not in FINAL and task.scheduled_at <= now:
        return "now"
    today = now.astimezone(zone).date()
    return _day_band(task.scheduled_at.astimezone(zone).date(), today)


def _day_band(day: date, today: date) -> str:
    ahead = (day - today).days
    if ahead < 0:
        return "yesterday" if ahead == -1 else "earlier"
    if ahead < 2:
        return "tomorrow" if ahead else "today"
    first_weekday = int(get_format("FIRST_DAY_OF_WEEK"))  # 0 is Sunday.
    left = (first_weekday - today.isoweekday() - 1) % 7  # Days of the week that come after today.
    return "week" if ahead <= left else "later"
