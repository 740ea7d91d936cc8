"""The page that lets rows follow what a timeline says now: it says how many change, and asks why."""

from __future__ import annotations

from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import DEFAULT_DB_ALIAS
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.admin.forms import ReasonForm
from timeline.admin.pages import FeaturePage, FeaturePages, policy_of
from timeline.admin.references import actor_of
from timeline.clocks import story_now
from timeline.exceptions import TimelineError, UnknownTimeline
from timeline.features.machines.plans import machine_plans
from timeline.features.plans.apply import apply_choices, check_choices
from timeline.features.plans.differ import Differs, differences_of_some
from timeline.features.plans.drift import cancel_undefined, undefined_rows
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.definition import Definition
    from timeline.features.plans.apply import Choices


MOST: Final = 1000  # Open runs, and rows in no run, of a timeline that this page changes. For more there is a command.
PATIENCE: Final = 20.0  # After so many seconds it goes no further, and says so.


class ApplyPages(FeaturePages):
    """For who may apply plans, and see all tasks."""

    def apply_view(self, request: HttpRequest) -> HttpResponse:
        """Say what would change, and ask why; once that is said, and nothing else would change by now, change it."""
        if not (request.user.has_perm("timeline.view_scheduledtask") and policy_of(request).may_apply(request.user)):
            raise PermissionDenied
        try:
            definition = registry.timeline(request.GET.get("timeline", ""))
        except UnknownTimeline:
            raise Http404(_("There is no such timeline.")) from None
        now, name = self.now_of(request), definition.name
        found, last = differences_of_some(definition, after=None, most=MOST, now=now, using=self.alias)
        loose = undefined_rows(name, using=self.alias).filter(run=None)[: MOST + 1].count()
        counts, back = _counts(found, loose), f"{self.address('plan')}?{urlencode({'timeline': name})}"
        is_too_much = last is not None or loose > MOST
        is_for_a_command = is_too_much or self._has_other_states(definition)
        form = ReasonForm(request.POST or None, now=now, zone=timezone.get_current_timezone())
        is_old = request.method == "POST" and request.POST.get("seen") != _seen(counts)
        if request.method == "POST" and form.is_valid() and not (is_for_a_command or is_old):
            reason, actor = form.cleaned_data["reason"], actor_of(request.user)
            if self._apply(request, definition, reason, actor):
                return HttpResponseRedirect(back)
        context: dict[str, Any] = {
            "name": name,
            "counts": counts,
            "total": sum(counts.values()),
            "runs": found.changed,
            "busy": found.busy,
            "seen": _seen(counts),
            "is_old": is_old,
            "is_too_much": is_too_much,
            "is_for_a_command": is_for_a_command,
            "line": command_line("timeline_apply", name, using=self.alias),
            "most": MOST,
            "form": form,
            "has_errors": bool(form.errors),
            "back": back,
        }
        return self.page(request, "apply", _("Apply the plan of %(timeline)s") % {"timeline": name}, now, context)

    def _has_other_states(self, definition: Definition) -> bool:
        """Whether somebody has to say what becomes of the states of a machine: the page cannot ask for that."""
        plans = machine_plans([definition], using=self.alias) if definition.machine is not None else []
        return any(plan.has_work for plan in plans)

    def _apply(self, request: HttpRequest, definition: Definition, reason: str, actor: str) -> bool:
        """Change the rows, batch by batch, and say how many were; gives whether that went well."""
        try:
            done, is_whole = self._change(check_choices(definition, reason=reason, actor=actor))
        except TimelineError as error:
            messages.error(request, str(error))
            return False
        said = ngettext("%(count)d task was changed.", "%(count)d tasks were changed.", done) % {"count": done}
        if is_whole:
            messages.success(request, said)
        else:
            messages.warning(request, said + " " + _("There is more to do: apply it again."))
        return True

    def _change(self, choices: Choices) -> tuple[int, bool]:
        name, using, give_up, done = choices.definition.name, self.alias, monotonic() + PATIENCE, 0
        batches = chain(
            (some.rows for some in apply_choices(choices, clock=story_now, using=using)),
            cancel_undefined(name, actor=choices.actor, reason=choices.reason, clock=story_now, using=using),
        )
        for rows in batches:
            done += rows
            if monotonic() > give_up:
                return done, False
        return done, True

    ROUTES = (FeaturePage("apply", "plan/apply/", apply_view, frozenset({"timeline"}), takes_forms=True),)


def command_line(command: str, timeline: str, *, using: str) -> str:
    """What to type in a terminal for a timeline."""
    where = "" if using == DEFAULT_DB_ALIAS else f" --database {using}"
    return f"python manage.py {command} {timeline}{where}"


def _counts(found: Differs, loose: int) -> dict[str, int]:
    """How many rows would be new, moved and cancelled; ``loose``: of tasks that nothing defines, in no run."""
    tasks = found.tasks.values()
    return {
        "new": sum(task.new for task in tasks),
        "moved": sum(task.moved for task in tasks),
        "cancelled": sum(task.cancelled for task in tasks) + loose,
    }


def _seen(counts: dict[str, int]) -> str:
    return " ".join(map(str, counts.values()))
