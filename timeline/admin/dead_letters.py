"""The page of dead letters: groups that failed alike, and one group with its tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from timeline.admin.confirm import Confirming
from timeline.admin.forms import ReasonForm
from timeline.admin.pages import Pages, policy_of
from timeline.admin.portions import PORTION, Place, place_in
from timeline.admin.references import actor_of, called, names_of
from timeline.admin.subject import Reader
from timeline.admin.task_list import FilterChip, row_of
from timeline.clocks import story_now
from timeline.features.bulk_actions.pages import begin_from, bulk_id_of  # of bulk_actions
from timeline.lifecycle import Reason
from timeline.operations.redrive import redrive_those
from timeline.policy import Action, TimelinePolicy
from timeline.reading.dead_letters import DeadLetters, dead_letters, in_retry
from timeline.reading.reason_texts import recall
from timeline.reading.run_again import fixed_since, run_again

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import User


# When they failed, as the page lets one choose.
SINCE: Final = {
    "": (pgettext_lazy("timeline", "at any time"), None),
    "day": (gettext_lazy("in the last 24 hours"), timedelta(days=1)),
    "week": (gettext_lazy("in the last 7 days"), timedelta(days=7)),
}
AT_A_TIME: Final = 100  # Tasks of a group that are shown, and redriven, at a time.

SPREADS: Final = (
    ("0", gettext_lazy("all at once")),
    ("600", gettext_lazy("within ten minutes")),
    ("3600", gettext_lazy("within an hour")),
    ("21600", gettext_lazy("within six hours")),
)


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
        again = run_again(among, group, now=now) if "\x00" not in group else []
        if group and not (found or again):
            raise Http404(_("There is no such group."))
        context = self._group(request, group, reader, now) if group else _to_be_tried(among)
        context |= {
            "groups": found,
            "group": group,
            "again": [(each, called(each.task_key), _where(group=each.group)) for each in again],
            "again_count": sum(each.total for each in again),
            "count": sum(each["letters"].count for each in found),
            "is_recent": bool(since),
            "since": [(_where(since=value, task=task), name, value == since) for value, (name, _span) in SINCE.items()],
            "chips": [FilterChip(pgettext("timeline", "Task"), called(task).words, _where(since=since))]
            if task
            else [],
            "may_redrive": policy_of(request).allows(request.user, Action.REDRIVE),
        }
        return self.page(request, "dead", pgettext("timeline", "Dead letters"), now, context)

    def _group(self, request: HttpRequest, group: str, reader: Reader, now: datetime) -> dict[str, Any]:
        """Its tasks, those first that failed last; if all were run again, these, each with what came of it."""
        visible = self.visible(request)
        dead = visible.dead_letters(group).select_related("run").order_by("-finished_at", "-pk")
        alike = visible.failed_alike(group).select_related("run").order_by("-finished_at", "-pk")
        tasks = list(dead[:AT_A_TIME])
        others = [] if tasks else list(alike[:AT_A_TIME])
        recall([*tasks, *others], using=self.alias)
        names = names_of((task.entity_ref for task in [*tasks, *others]), using=self.alias, site=self.admin_site.name)
        fixed = fixed_since(others, using=self.alias)
        return {
            "rows": [row_of(task, names[task.entity_ref], now, reader) for task in tasks],
            "others": [
                row_of(task, names[task.entity_ref], now, reader)._replace(fixed=fixed.get(task.pk, ""))
                for task in others
            ],
            "most": AT_A_TIME,
        }


def _where(**asked: str) -> str:
    return f"?{urlencode(given)}" if (given := {name: value for name, value in asked.items() if value}) else ""


def _failed_since(tasks: ScheduledTaskQuerySet, since: str, now: datetime) -> ScheduledTaskQuerySet:
    span = SINCE.get(since, SINCE[""])[1]
    return tasks if span is None else tasks.filter(finished_at__gt=now - span)


def _to_be_tried(tasks: ScheduledTaskQuerySet) -> dict[str, Any]:
    return {"trying": [(each, called(each.task_key)) for each in in_retry(tasks)]}


def shown_group(each: DeadLetters, reader: Reader) -> dict[str, Any]:
    """A group as it is shown: its error only to who may read errors."""
    shown = replace(each, sample=reader.shown(each.sample))
    return {"letters": each, "called": called(each.task_key), "message": shown.message}


class RedriveForm(ReasonForm):
    """Why, and within which time they become due."""

    spread = forms.ChoiceField(
        label=gettext_lazy("They run"),
        choices=SPREADS,
        initial="0",
        help_text=gettext_lazy("One after the other, if what failed could not bear all of them at once."),
    )
    field_order = ("spread", "reason")


class RedrivePages(Pages):
    """Who may redrive does so with all of a group at once."""

    def redrive_view(self, request: HttpRequest) -> HttpResponse:
        """Count and ask; once the reason is given, redrive a few, or have polls redrive many."""
        policy, group = policy_of(request), request.GET.get("group", "")
        if not policy.allows(request.user, Action.REDRIVE):
            raise PermissionDenied
        dead = self.visible(request).dead_letters(group) if group and "\x00" not in group else None
        place = place_in(request.POST.dict())
        if place is None:
            place = Place(story_now(self.alias), None, 0, 0, 0 if dead is None else dead.count())
        if dead is None or not place.total:
            raise Http404(_("There is no such group."))
        form = self._redrive_form(request)
        if request.method == "POST" and form.is_valid():
            if place.total > PORTION:  # of bulk_actions
                return self._begin_redrive(request, group, place, form)
            place = self._redrive(dead.filter(finished_at__lte=place.before), place, form, policy, request.user)
            self._say(request, place)
            return HttpResponseRedirect(self.address("dead"))
        context = {
            "form": form,
            "has_errors": bool(form.errors),
            "alike": self._groups_of(request, group),
            "place": place,
            "bulk_id": bulk_id_of(request) if place.total > PORTION else None,  # of bulk_actions
            "back": self.address("dead"),
        }
        return self.page(request, "redrive", pgettext("timeline", "Redrive all"), self.now_of(request), context)

    def _groups_of(self, request: HttpRequest, group: str) -> list[dict[str, Any]]:
        reader = Reader(policy_of(request), request.user)
        return [shown_group(each, reader) for each in dead_letters(self.visible(request), group)]

    def _redrive_form(self, request: HttpRequest) -> RedriveForm:
        given = request.POST if request.method == "POST" else None
        return RedriveForm(given, now=story_now(self.alias), zone=timezone.get_current_timezone())

    def _redrive(
        self, dead: ScheduledTaskQuerySet, place: Place, form: RedriveForm, policy: TimelinePolicy, user: User
    ) -> Place:
        """Redrive a few at once, in batches that are committed each by itself."""
        tasks = list(dead.select_related("run").order_by("pk")[:PORTION])
        done = redrive_those(
            [task.pk for task in tasks if Action.REDRIVE in policy.actions(user, task)],
            reason=Reason.operator(form.cleaned_data["reason"], actor_of(user)),
            spread=_spread(form),
            now=story_now(self.alias),
            using=self.alias,
        )
        return place._replace(changed=done.redriven, left=len(tasks) - done.redriven)

    def _begin_redrive(  # of bulk_actions
        self, request: HttpRequest, group: str, place: Place, form: RedriveForm
    ) -> HttpResponse:
        """Begin a bulk action with those that had failed when they were counted."""
        return begin_from(
            self,
            request,
            Action.REDRIVE,
            place,
            filters={"group": group, "ended_until": place.before.isoformat()},
            spread=_spread(form),
            reason=form.cleaned_data["reason"],
        )

    def _say(self, request: HttpRequest, place: Place) -> None:
        said = ngettext("%(count)d task runs again.", "%(count)d tasks run again.", place.changed)
        messages.success(request, said % {"count": place.changed})
        if place.left:
            said = ngettext(
                "%(count)d task stays as it is: its run has ended otherwise, or somebody was sooner.",
                "%(count)d tasks stay as they are: their runs have ended otherwise, or somebody was sooner.",
                place.left,
            )
            messages.warning(request, said % {"count": place.left})


def _spread(form: RedriveForm) -> timedelta | None:
    return timedelta(seconds=int(form.cleaned_data["spread"])) or None
