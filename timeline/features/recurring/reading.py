"""When a timeline starts by the clock, in plain words; and clocks that stand still, or have passed over a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import Final, NamedTuple

from django.db.models import Count, Min
from django.utils.translation import gettext as _

from timeline.conf import get_settings
from timeline.definition import Definition, Recurring
from timeline.features.recurring.planner import Known, passed_since, silent_until
from timeline.features.recurring.slots import on_the_wall
from timeline.features.recurring.store import BEGUN, last_slots
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.timing import told_time
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


MOST_NAMED: Final = 10  # Timelines in a sentence.
LATE: Final = 60  # Poll intervals that a run may be late before something is wrong: a minute by default.


def troubles_of_clocks(*, now: datetime, using: str, is_polled: bool) -> Iterator[str]:
    """
    Timelines whose clock stands still because it was ahead once, and, if polls begin runs, those of which a time has passed
    without one. If no timeline starts by the clock, nothing is asked.
    """
    clocks = {known.name: known.recurring for known in registry if known.recurring is not None}
    if not clocks or not get_settings().AUTOSTART:
        return
    until: dict[str, datetime] = {}
    missed: dict[str, datetime] = {}
    for name, runs in last_slots(list(clocks), using=using).items():
        last, before, *_rest = [*(Known(run.started_at, run.key, False, run.recorded_at) for run in runs), None]
        with suppress(OverflowError):
            if (at := silent_until(clocks[name], last, before, now=now)) is not None:
                until[name] = at
            elif (
                is_polled
                and (at := passed_since(clocks[name], last, now=now - LATE * get_settings().POLL_INTERVAL)) is not None
            ):
                missed[name] = at
    if until:
        yield _(
            "A clock was ahead when the next runs of %(timelines)s were made: none begins before %(at)s. See that all clocks "
            "are right. To begin sooner, give the timelines other names."
        ) % {"timelines": _named(until), "at": told_time(min(until.values()))}
    if missed:
        yield _(
            "A time of %(timelines)s has passed and no run of it began, the first on %(at)s. Polls begin runs; see that they "
            "succeed."
        ) % {"timelines": _named(missed), "at": told_time(min(missed.values()))}


def _named(names: Iterable[str]) -> str:
    known = sorted(names)
    return ", ".join([*known[:MOST_NAMED], *(["…"] if known[MOST_NAMED:] else [])])
