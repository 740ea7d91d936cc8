"""When a timeline starts by the clock, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import NamedTuple

from django.db.models import Count, Min
from django.utils.translation import gettext as _

from timeline.definition import Definition, Recurring
from timeline.features.recurring.slots import on_the_wall
from timeline.features.recurring.store import BEGUN, last_slots
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.told_times import zone_told


def next_slot(recurring: Recurring, *, now: datetime) -> datetime | None:
    """The next slot by the schedule alone, whatever happened to its row; None: there is no further slot."""
    return next(next_slots(recurring, now=now), None)


def next_slots(recurring: Recurring, *, now: datetime) -> Iterator[datetime]:
    """All slots that are ahead, by the schedule alone, in order."""
    if recurring.slots is not None:
        with suppress(OverflowError):
            yield from (slot.at for slot in recurring.slots.since(now, recurring.timezone))


class Next(NamedTuple):
    """What comes next by the rows: the first due time of a run not begun (None: none), and the last slot that was."""

    begins_at: datetime | None = None
    past: datetime | None = None


def next_runs(definitions: Iterable[Definition], *, using: str) -> dict[str, Next]:
    """What comes next, by the names of timelines; those that no clock starts are left out. Two statements at most."""
    names = [known.name for known in definitions if known.recurring is not None]
    latest = last_slots(names, using=using) if names else {}
    there = [run.pk for runs in latest.values() for run in runs if run.is_open]
    begun, tasks = Count("pk", filter=BEGUN), ScheduledTask.objects.using(using).filter(run__in=there).order_by()
    found = tasks.values_list("run").annotate(first=Min("scheduled_at"), begun=begun) if there else ()
    first = {run: at for run, at, has_begun in found if not has_begun}
    waiting = {*there} - {run for run, _at, has_begun in found if has_begun}
    return {
        name: Next(
            min((first[run.pk] for run in runs if run.pk in first), default=None),
            max((run.started_at for run in runs if run.pk not in waiting), default=None),
        )
        for name, runs in latest.items()
    }


def schedule_in_words(recurring: Recurring, *, now: datetime, begins_at: datetime | None = None) -> str:
    """When a timeline starts, and when next (``begins_at``): ``every day at 02:00 in Europe/Berlin, next …``."""
    said, zone = recurring.describe(), recurring.timezone
    following = begins_at or next_slot(recurring, now=now)
    if following is None:
        return said
    at = on_the_wall(following, zone_told() or zone) + told_there(following, zone)
    return _("%(said)s, next %(at)s") % {"said": said, "at": at}


def told_there(at: datetime, zone: tzinfo) -> str:
    """What the clock of a schedule's zone shows, beside a page's own time: `` (02:00 there)``; empty: the same."""
    here = zone_told()
    if here is None or at.astimezone(here).replace(tzinfo=None) == at.astimezone(zone).replace(tzinfo=None):
        return ""
    return " " + _("(%(time)s there)") % {"time": f"{at.astimezone(zone):%H:%M}"}


def schedule_of(timeline: str, *, now: datetime) -> str:
    """Say when a timeline starts by the clock; empty: it does not, or is not known here."""
    known = next((known for known in registry if known.name == timeline), None)
    return "" if known is None or known.recurring is None else schedule_in_words(known.recurring, now=now)


def told_clock(task: ScheduledTask, *, now: datetime) -> Iterator[str]:
    """For the story of a task, say when its timeline starts by the clock."""
    if task.run_id and (said := schedule_of(task.timeline, now=now)):
        yield _("Its timeline starts by the clock: %(schedule)s.") % {"schedule": said}
