"""The page of dead letters: groups that failed alike, and one group with its tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from timeline.admin.confirming import Confirming
from timeline.admin.listing import Chip, row_of
from timeline.admin.naming import called, names_of
from timeline.admin.pages import policy_of
from timeline.admin.readers import Reader
from timeline.policy import Action
from timeline.reading.dead_letters import DeadLetters, dead_letters, in_retry
from timeline.reading.recalling import recall

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

# When they failed, as the page lets one choose.
SINCE: Final = {
    "": (pgettext_lazy("timeline", "at any time"), None),
    "day": (gettext_lazy("in the last 24 hours"), timedelta(days=1)),
    "week": (gettext_lazy("in the last 7 days"), timedelta(days=7)),
}
AT_A_TIME: Final = 100  # Tasks of a group that are shown, and redriven, at a time.


class DeadLetterPages(Confirming):
    """The groups; and one of them, whose tasks can be redriven by the page that asks for a reason."""

    def dead_view(self, request: HttpRequest) -> HttpResponse:
        """Show all groups, those of one ``task``, or the one that ``group`` names."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        visible, reader = self.visible(request), Reader(policy_of(request), request.user)
        group, now = request.GET.get("group", ""), self.now_of(request)
        since, task = request.GET.get("since", ""), request.GET.get("task", "").replace("\x00", "")
        among = visible.filter(task_key=task) if task and not group else visible
        letters = dead_letters(_failed_since(among, since, now), group) if "\x00" not in group else []
        found = [shown_group(each, reader) for each in letters]
        if group and not found:
            raise Http404(_("There is no such group."))
        context = self._group(request, group, reader, now) if group else _to_be_tried(among)
        context |= {
            "groups": found,
            "group": group,
            "count": sum(each["letters"].count for each in found),
            "is_recent": bool(since),
            "since": [(_where(since=value, task=task), name, value == since) for value, (name, _span) in SINCE.items()],
            "chips": [Chip(pgettext("timeline", "Task"), called(task).words, _where(since=since))] if task else [],
            "may_redrive": policy_of(request).allows(request.user, Action.REDRIVE),
        }
        return self.page(request, "dead", pgettext("timeline", "Dead letters"), now, context)

    def _group(self, request: HttpRequest, group: str, reader: Reader, now: datetime) -> dict[str, Any]:
        """The tasks of a group, those that were discarded last first."""
        dead = self.visible(request).dead_letters(group).select_related("run").order_by("-finished_at", "-pk")
        tasks = list(dead[:AT_A_TIME])
        recall(tasks, using=self.alias)
        names = names_of((task.entity_ref for task in tasks), using=self.alias, site=self.admin_site.name)
        return {
            "rows": [row_of(task, names[task.entity_ref], now, reader) for task in tasks],
            "most": AT_A_TIME,
        }


def _where(**asked: str) -> str:
    """The end of the page's address that asks so."""
    return f"?{urlencode(given)}" if (given := {name: value for name, value in asked.items() if value}) else ""


def _failed_since(tasks: ScheduledTaskQuerySet, since: str, now: datetime) -> ScheduledTaskQuerySet:
    """Those that failed within this time."""
    span = SINCE.get(since, SINCE[""])[1]
    return tasks if span is None else tasks.filter(finished_at__gt=now - span)


def _to_be_tried(tasks: ScheduledTaskQuerySet) -> dict[str, Any]:
    """What failed and will be tried again, by kind."""
    return {"trying": [(each, called(each.task_key)) for each in in_retry(tasks)]}


def shown_group(each: DeadLetters, reader: Reader) -> dict[str, Any]:
    """A group as it is shown: its error only to who may read errors."""
    shown = replace(each, sample=reader.shown(each.sample))
    return {"letters": each, "called": called(each.task_key), "message": shown.message}
