"""Causes of failures, as the page of dead letters shows them: which kinds of tasks, since when, and a chart by the hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from django.utils.formats import number_format
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.admin.references import Called, called
from timeline.admin.subject import Reader
from timeline.exceptions import UnknownTask
from timeline.likeness import headline
from timeline.policy import Action
from timeline.reading.dead_letters import Cause, DeadLetters, failures_by_hour
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

HOURS: Final = {"day": 24}
_A_WEEK: Final = 168
HEIGHT: Final = 28


class HourChart(NamedTuple):
    """Bars by the hour up to now, as one path that is ``width`` units wide, and the same in words."""

    width: int
    path: str
    said: str


class ShownKind(NamedTuple):
    """A kind of task that failed for a cause; ``may_redrive``: whether who looks may run such a task again."""

    letters: DeadLetters
    called: Called
    message: str
    where: str
    may_redrive: bool


class ShownCause(NamedTuple):
    """One cause; ``message`` is empty for who may not read errors, ``version`` where no definition scheduled the task."""

    cause: Cause
    message: str
    kinds: list[ShownKind]
    where: str
    oldest: str
    version: str
    chart: HourChart | None


def shown_group(each: DeadLetters, reader: Reader) -> dict[str, Any]:
    """A group as it is shown: its error only to who may read errors."""
    shown = replace(each, sample=reader.shown(each.sample))
    return {"letters": each, "called": called(each.task_key), "message": shown.message}


def shown_kind(each: DeadLetters, reader: Reader) -> ShownKind:
    """The same as a part of a cause. The policy is asked about the sample."""
    may = Action.REDRIVE in reader.policy.actions(reader.user, each.sample)
    where = f"?{urlencode({'group': each.group})}" if each.group else ""
    return ShownKind(where=where, may_redrive=may, **shown_group(each, reader))


def shown_causes(
    causes: Iterable[Cause], tasks: ScheduledTaskQuerySet, reader: Reader, *, since: str, now: datetime, zone: tzinfo
) -> list[ShownCause]:
    """Put together causes, with their charts of the last week, or of the last day, in one statement."""
    hours, causes = HOURS.get(since, _A_WEEK), list(causes)
    last = now.replace(minute=0, second=0, microsecond=0)
    first = last - timedelta(hours=hours - 1)
    counts = failures_by_hour(tasks, causes, first)
    found = []
    for cause in causes:
        kinds = [shown_kind(each, reader) for each in cause.groups]
        latest = next(kind for kind in kinds if kind.letters is cause.latest)
        found.append(
            ShownCause(
                cause,
                headline(latest.message) if cause.count > 1 else latest.message.partition("\n")[0],
                kinds,
                f"?{urlencode({'cause': cause.key})}",
                timesince(cause.first.first_at, now),
                _version(cause),
                chart_of(counts.get(cause.key, {}), first, hours, zone),
            )
        )
    return found


def _version(cause: Cause) -> str:
    if not cause.version:
        return ""
    try:
        is_declared = registry.task(cause.first.task_key)[1].fingerprint == cause.version
    except UnknownTask:
        is_declared = False
    said = {"version": cause.version[:8]}
    if is_declared:
        return _("first seen in version %(version)s of its definition, as it is now") % said
    return _("first seen in version %(version)s of its definition, which has changed since") % said


def chart_of(counts: Mapping[datetime, int], first: datetime, hours: int, zone: tzinfo) -> HourChart | None:
    """Draw how many failed in each hour; None: none in this time."""
    places = {round((hour - first) / timedelta(hours=1)): count for hour, count in counts.items()}
    bars = {place: count for place, count in places.items() if 0 <= place < hours}
    if not bars:
        return None
    most = max(bars.values())
    parts = []
    for place, count in sorted(bars.items()):
        height = max(round(HEIGHT * count / most), 2)
        parts.append(f"M{place} {HEIGHT}v-{height}h.85v{height}z")
    busiest = first + timedelta(hours=min(place for place, count in bars.items() if count == most))
    said = ngettext(
        "Failed by the hour: most at %(at)s, %(count)s task",
        "Failed by the hour: most at %(at)s, %(count)s tasks",
        most,
    ) % {"at": f"{busiest.astimezone(zone):%Y-%m-%d %H:%M}", "count": number_format(most)}
    return HourChart(hours, "".join(parts), said)
