"""The page of health: is what is due being run, what is wrong if not, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from math import log10
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.admin.attention import ListedCount, told_waiting
from timeline.admin.pages import Pages, policy_of
from timeline.admin.references import called
from timeline.clocks import is_told
from timeline.features.maintenance.figures import AN_HOUR, Span, busiest, figures, spans
from timeline.reading.attention import told_count
from timeline.reading.diagnosis import Health, diagnose
from timeline.reading.machinery import WorkerSign, as_seen, latest_signs

HEIGHT: Final = 90  # Of the part in which bars and points stand.
LEAST: Final = 0.1  # Seconds; lateness is drawn by its logarithm from there
MOST: Final = 86400.0  # to a day.
_TICKS: Final = 6

SPANS: Final = {"": (24, 1), "week": (168, 6)}  # Hours that the plots show, and hours of each bar.
MOST_TASKS: Final = 8


class PlotBar(NamedTuple):
    """A bar of a plot: in percent across, in pixels down. What failed stands on what completed."""

    x: float
    width: float
    good_y: float
    good: float
    bad_y: float
    bad: float
    title: str


class Point(NamedTuple):
    """A point of a line: in percent across, in pixels down."""

    x: float
    y: float
    title: str


class PlotTick(NamedTuple):
    """A time below a plot."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Plots:
    """
    Two plots over the same time: completed and failed as bars, lateness as lines of ``half`` (p50) and ``most`` (p95).

    ``rows`` is the same as a table, without empty spans: time, figures, p50, p95.
    """

    bars: Sequence[PlotBar]
    highest: str
    half: Sequence[Point]
    most: Sequence[Point]
    ticks: Sequence[PlotTick]
    rows: Sequence[tuple[str, Span, str, str]]


def plots(spans: Sequence[Span], *, zone: tzinfo) -> Plots | None:
    """Place what spans say; None: nothing happened in any."""
    if all(span.is_empty for span in spans):
        return None
    width = 100 / len(spans)
    highest = max(span.completed + span.failed + span.discarded for span in spans) or 1
    bars: list[PlotBar] = []
    half: list[Point] = []
    most: list[Point] = []
    for number, span in enumerate(spans):
        at, x = _at(span.begins, zone), round(number * width, 3)
        good, bad = HEIGHT * span.completed / highest, HEIGHT * (span.failed + span.discarded) / highest
        said = _("%(at)s: %(completed)s completed, %(failed)s failed, %(discarded)s discarded") % {
            "at": at,
            "completed": number_format(span.completed),
            "failed": number_format(span.failed),
            "discarded": number_format(span.discarded),
        }
        bars.append(
            PlotBar(x, round(width * 0.8, 3), _px(HEIGHT - good), _px(good), _px(HEIGHT - good - bad), _px(bad), said)
        )
        for line, seconds in ((half, span.late_p50), (most, span.late_p95)):
            if seconds is not None:
                line.append(Point(round(x + width * 0.4, 3), _height_of(seconds), f"{at}: {in_short(seconds)}"))
    every = max(len(spans) // _TICKS, 1)
    is_a_day = len(spans) < 2 or spans[1].begins - spans[0].begins <= AN_HOUR
    ticks = [
        PlotTick(
            round(number * width, 3), f"{spans[number].begins.astimezone(zone):{'%H:%M' if is_a_day else '%m-%d'}}"
        )
        for number in range(0, len(spans), every)
    ]
    rows = [
        (_at(span.begins, zone), span, in_short(span.late_p50), in_short(span.late_p95))
        for span in reversed(spans)
        if not span.is_empty
    ]
    return Plots(bars, number_format(highest), half, most, ticks, rows)


def in_short(seconds: float | None) -> str:
    """A length of time in few letters; an estimate needs no more."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return _("%(number)s s") % {"number": number_format(round(seconds, 1))}
    if seconds < 120:
        return _("%(number)s s") % {"number": round(seconds)}
    if seconds < 7200:
        return _("%(number)s min") % {"number": round(seconds / 60)}
    hours = round(seconds / 3600)
    return ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours}


def _at(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%m-%d %H:%M}"


def _px(length: float) -> float:
    return round(length, 1)


def _height_of(seconds: float) -> float:
    share = log10(min(max(seconds, LEAST), MOST) / LEAST) / log10(MOST / LEAST)
    return _px(HEIGHT * (1 - share))


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong and what to do, with a link to where it is seen, if any."""

    text: str
    url: str = ""
    link: str = ""


class HealthPages(Pages):
    """What the doctor says, for who may see all tasks."""

    def health_view(self, request: HttpRequest) -> HttpResponse:
        """Show how the tasks of this database are doing."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        now, [signs] = self.now_and(request, [latest_signs(using=self.alias)])
        health = diagnose(now=now, using=self.alias)
        context: dict[str, Any] = {
            "health": health,
            "is_story": is_told(),
            "findings": self._findings(health),
            "waiting": told_waiting(
                health.waiting, self.address, request, policy_of(request), site=self.admin_site.name
            ),
            "counts": self._counts(health),
            "workers": [(each, _told(each)) for each in as_seen(signs)],
            **self._figures(request, now),
        }
        return self.page(request, "health", pgettext("timeline", "Health"), now, context)

    def _figures(self, request: HttpRequest, now: datetime) -> dict[str, Any]:
        span = request.GET.get("span", "")
        hours, width = SPANS.get(span, SPANS[""])
        task = request.GET.get("task", "").replace("\x00", "")[:200]
        rows = figures(hours=hours, now=now, using=self.alias)
        known = spans(rows, hours=hours, width=width, task_key=task, now=now)
        where = {"span": span} if span in SPANS and span else {}
        return {
            "plots": plots(known, zone=timezone.get_current_timezone()),
            "spans": [
                (value, label, f"?{urlencode({'span': value} | ({'task': task} if task else {}))}", value == span)
                for value, label in (("", pgettext("timeline", "Day")), ("week", pgettext("timeline", "Week")))
            ],
            "of_task": called(task) if task else None,
            "of_all": f"?{urlencode(where)}",
            "busiest": [
                (called(key), good, bad, f"?{urlencode(where | {'task': key})}")
                for key, good, bad in busiest(rows, most=MOST_TASKS)
            ],
        }

    def _findings(self, health: Health) -> list[Finding]:
        found = [Finding(text) for text in [*health.problems, *health.troubles]]
        for each in health.discards:
            said = ngettext(
                "%(count)d task %(task)s failed for good within 24 hours (%(error)s). Mend the cause, and run it again.",
                "%(count)d tasks %(task)s failed for good within 24 hours (%(error)s). Mend the cause, and run them again.",
                each["count"],
            )
            text = said % {"count": each["count"], "task": called(each["task_key"]).words, "error": each["error"]}
            found.append(Finding(text, self.address("dead"), pgettext("timeline", "Dead letters")))
        for key in health.closed_limits:
            text = _(
                "The limit %(key)s is closed: a task was started and did not complete. See to it, and open the limit."
            )
            found.append(Finding(text % {"key": key}, self.address("limits"), pgettext("timeline", "Limits")))
        for each in health.undefined:
            where = f"{self.address('changelist')}?{urlencode({'task': each['task_key']})}"
            text = _("Without a definition: %(task)s (%(count)s).")
            told = {"task": each["task_key"], "count": told_count(each["count"])}
            found.append(Finding(text % told, where, _("Show them")))
        if health.snapshot is not None and health.snapshot.query:
            found.append(Finding(_("The last query of that session: %(query)s") % {"query": health.snapshot.query}))
        return found

    def _counts(self, health: Health) -> list[ListedCount]:
        where = self.address("changelist")
        told = [
            ListedCount(
                pgettext("timeline", "overdue, with nothing in the way"),  # Not on hold, nor waiting for a place.
                told_count(health.overdue),
                f"{where}?state=overdue",
            ),
            ListedCount(
                pgettext("timeline", "on their way to a worker"), told_count(health.pending), f"{where}?state=pending"
            ),
            ListedCount(pgettext("timeline", "being run"), told_count(health.active), f"{where}?state=active"),
            ListedCount(
                pgettext("timeline", "will try again"), told_count(health.retrying), f"{where}?state=retryable"
            ),
            ListedCount(pgettext("timeline", "left by lost workers"), told_count(health.stuck)),
            ListedCount(
                pgettext("timeline", "failed for good in the last 24 hours"),
                told_count(health.discarded),
                f"{self.address('dead')}?since=day",
            ),
        ]
        if health.holds:
            told.append(
                ListedCount(pgettext("timeline", "due and on hold"), told_count(health.held), self.address("holds"))
            )
        return told


def _told(sign: WorkerSign) -> str:
    seconds = int(sign.ago.total_seconds())
    if seconds < 120:
        return ngettext("%(count)d second ago", "%(count)d seconds ago", seconds) % {"count": seconds}
    return _("%(time)s ago") % {"time": timesince(sign.seen_at, sign.seen_at + sign.ago, depth=1)}
