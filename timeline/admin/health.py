"""The page of health: is what is due being run, what is wrong if not, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.admin.naming import called
from timeline.admin.pages import Pages
from timeline.admin.plots import plots
from timeline.clocks import story_now
from timeline.reading.diagnosing import Health, diagnose, told_count
from timeline.reading.figures import busiest, figures, spans
from timeline.reading.workers import WorkerSign, workers_seen

SPANS: Final = {"": (24, 1), "week": (168, 6)}  # Hours that the plots show, and hours of each bar.
MOST_TASKS: Final = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Something that is wrong.

    Args:
        text: What, and what to do.
        url: Where it is seen; empty: nowhere.
        link: What the link says.
    """

    text: str
    url: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Count:
    """How many tasks are in some way, and where they are listed; empty: nowhere."""

    name: str
    said: str
    url: str = ""


class HealthPages(Pages):
    """What the doctor says, for who may see all tasks."""

    def health_view(self, request: HttpRequest) -> HttpResponse:
        """Show how the tasks of this database are doing."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        now = story_now(self.alias)
        health = diagnose(now=now, using=self.alias)
        context: dict[str, Any] = {
            "health": health,
            "findings": self._findings(health),
            "counts": self._counts(health),
            "workers": [(each, _told(each)) for each in workers_seen(using=self.alias)],
            **self._figures(request, now),
        }
        return self.page(request, "health", pgettext("timeline", "Health"), now, context)

    def _figures(self, request: HttpRequest, now: datetime) -> dict[str, Any]:
        """Plots of a day by the hour, or of a week by six hours; of one task, if that is asked for."""
        span = request.GET.get("span", "")
        hours, step = SPANS.get(span, SPANS[""])
        task = request.GET.get("task", "").replace("\x00", "")[:200]
        rows = figures(hours=hours, now=now, using=self.alias)
        known = spans(rows, hours=hours, step=step, task_key=task, now=now)
        where = {"span": span} if span in SPANS and span else {}
        return {
            "plots": plots(known, zone=timezone.get_default_timezone()),
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
                "%(count)d task %(task)s was discarded in the last 24 hours (%(error)s). Mend the cause, and redrive it.",
                "%(count)d tasks %(task)s were discarded in the last 24 hours (%(error)s). Mend the cause, and redrive them.",
                each["count"],
            )
            text = said % {"count": each["count"], "task": called(each["task_key"]).words, "error": each["error"]}
            found.append(Finding(text, self.address("dead"), pgettext("timeline", "Dead letters")))
        for key in health.closed_limits:
            text = _(
                "The limit %(key)s is closed: a task was started and did not complete. See to it, and open the limit."
            )
            found.append(Finding(text % {"key": key}, self.address("limits"), pgettext("timeline", "Limits")))
        for key in health.unknown_task_keys:
            where = f"{self.address('changelist')}?{urlencode({'task': key})}"
            found.append(Finding(_("Of nobody: %(task)s.") % {"task": key}, where, _("Show them")))
        return found

    def _counts(self, health: Health) -> list[Count]:
        where = self.address("changelist")
        told = [
            Count(
                pgettext("timeline", "overdue, with nothing in the way"),  # Not on hold, nor waiting for a place.
                told_count(health.overdue),
                f"{where}?state=overdue",
            ),
            Count(
                pgettext("timeline", "on their way to a worker"), told_count(health.pending), f"{where}?state=pending"
            ),
            Count(pgettext("timeline", "being run"), told_count(health.active), f"{where}?state=active"),
            Count(pgettext("timeline", "to be tried again"), told_count(health.retrying), f"{where}?state=retryable"),
            Count(pgettext("timeline", "left by lost workers"), told_count(health.stuck)),
            Count(
                pgettext("timeline", "discarded in the last 24 hours"),
                told_count(health.discarded),
                f"{self.address('dead')}?since=day",
            ),
        ]
        if health.holds:
            told.append(Count(pgettext("timeline", "due and on hold"), told_count(health.held), self.address("holds")))
        return told


def _told(sign: WorkerSign) -> str:
    """How long ago a worker gave its last sign, as people read it."""
    seconds = int(sign.ago.total_seconds())
    if seconds < 120:
        return ngettext("%(count)d second ago", "%(count)d seconds ago", seconds) % {"count": seconds}
    return _("%(time)s ago") % {"time": timesince(sign.seen_at, sign.seen_at + sign.ago, depth=1)}
