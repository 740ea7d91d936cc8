"""The page of plans: how the rows of a timeline differ from what it says now. It reads some of them, and changes nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db import DEFAULT_DB_ALIAS
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.admin.naming import called, names_of
from timeline.admin.pages import Pages, policy_of
from timeline.exceptions import UnknownTimeline
from timeline.operations.differing import Differs, TaskDiffers, differences_of_some
from timeline.reading.machine_plans import MachinePlan, machine_plans
from timeline.reading.retelling import retold_reason
from timeline.reading.tallies import Amount, run_counts
from timeline.registry import registry
from timeline.store.kinds import timelines_there

if TYPE_CHECKING:
    from timeline.definition import Definition

MOST: Final = 1000  # Runs that a page looks at.


class PlanPages(Pages):
    """Which timelines there are to compare; and one of them, some runs at a time."""

    def plan_view(self, request: HttpRequest) -> HttpResponse:
        """Show what the next sweep would change of one timeline, or which there are."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        now, name = self.now_of(request), request.GET.get("timeline", "")
        if not name:
            return self.page(request, "plan", pgettext("timeline", "Plan"), now, {"counts": self._open_runs()})
        try:
            definition = registry.timeline(name)
        except UnknownTimeline:
            raise Http404(_("There is no such timeline.")) from None
        context = self._compared(request, definition, _place(request.GET.get("after", "")), now)
        title = _("Plan of %(timeline)s") % {"timeline": name}
        return self.page(request, "plan", title, now, context)

    def _open_runs(self) -> list[tuple[str, Amount, bool]]:
        """Names of timelines, how many open runs each has, and whether there is such a timeline here."""
        known = {definition.name for definition in registry}
        counts = run_counts(sorted(known.union(timelines_there(self.alias))), using=self.alias)
        return [(name, count, name in known) for name, count in counts.items() if count or name in known]

    def _compared(
        self, request: HttpRequest, definition: Definition, after: UUID | None, now: datetime
    ) -> dict[str, Any]:
        found, last = differences_of_some(definition, after=after, most=MOST, now=now, using=self.alias)
        query = {"timeline": definition.name, "after": str(last)}
        is_part = after is not None or last is not None
        return {
            "name": definition.name,
            "declared": self.address("timeline", definition.name),
            "differs": found,
            "tasks": self._tasks(request, definition, found),
            "total": run_counts([definition.name], using=self.alias)[definition.name] if is_part else None,
            "most": MOST,
            "is_part": is_part,
            "next": f"?{urlencode(query)}" if last else "",
            "first": f"?{urlencode({'timeline': definition.name})}" if after else "",
            "left": found.left.most_common(5),
            "machine": self._machine(definition),
            "plan_line": self._command("timeline_plan", definition),
            "apply_line": self._command("timeline_apply", definition),
        }

    def _tasks(self, request: HttpRequest, definition: Definition, found: Differs) -> list[dict[str, Any]]:
        """Each task, with a few of what would change, as far as the user may see whose that is."""
        policy, user = policy_of(request), request.user
        shown = [
            (
                name,
                task,
                [
                    sample
                    for sample in task.samples
                    if policy.sees_timeline(user, definition.name, sample.entity, using=self.alias)
                ],
            )
            for name, task in found.tasks.items()
        ]
        refs = {sample.entity for _name, _task, samples in shown for sample in samples}
        names = names_of(refs, using=self.alias, site=self.admin_site.name)
        return [
            {
                "called": called(definition.task_key(name)),
                "renamed": _renamed(definition, name),
                "differs": task,
                "cancelled": task.cancelled - task.orphaned,
                "by": _by(task),
                "samples": [
                    (sample, names[sample.entity], retold_reason(sample.reason) if sample.reason else "")
                    for sample in samples
                ],
            }
            for name, task, samples in shown
        ]

    def _machine(self, definition: Definition) -> MachinePlan | None:
        """What its table lacks, if it is a machine that lacks anything."""
        plans = machine_plans([definition], using=self.alias) if definition.machine is not None else []
        return next((plan for plan in plans if plan.has_work), None)

    def _command(self, command: str, definition: Definition) -> str:
        """A line for a terminal."""
        where = "" if self.alias == DEFAULT_DB_ALIAS else f" --database {self.alias}"
        return f"python manage.py {command} {definition.name}{where}"


def _place(after: str) -> UUID | None:
    """The run behind which the page begins."""
    try:
        return UUID(after) if after else None
    except ValueError:
        raise Http404(_("There is no such page.")) from None


def _renamed(definition: Definition, name: str) -> str:
    """What the method of a task is called now whose rows keep an older name; else empty."""
    declared = definition.tasks.get(name)
    return declared.method_name if declared is not None and declared.options.was else ""


def _by(task: TaskDiffers) -> tuple[str, ...]:
    """By how much rows would move: the least, and the most, where that is another."""
    if task.earliest is None or task.latest is None:
        return ()
    return tuple(dict.fromkeys(_length(shift) for shift in (task.earliest, task.latest)))


def _length(shift: timedelta) -> str:
    """A shift for people: a sign, days, and hours and minutes if there are any."""
    sign, length = ("−" if shift < timedelta() else "+"), abs(shift)
    hours, seconds = divmod(length.seconds, 3600)
    days = f"{length.days} d" if length.days else ""
    clock = f"{hours}:{seconds // 60:02}" if length.seconds else ""
    return f"{sign}{' '.join(part for part in (days, clock) if part) or '0:00'}"
