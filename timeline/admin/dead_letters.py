"""The page of dead letters: causes, each with the kinds of tasks that failed for it; one cause, or one kind, with its tasks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from timeline.admin.before_again import LOOKED_AT, fates_of
from timeline.admin.causes import shown_causes, shown_group, shown_kind
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
from timeline.reading.dead_letters import Cause, RunAgain, causes_of, dead_letters, fixed_since, in_retry, run_again
from timeline.reading.reason_texts import recall

if TYPE_CHECKING:
    from timeline.admin.before_again import Fates
    from timeline.admin.causes import ShownKind
    from timeline.models import ScheduledTask
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
    """The causes; one of them or one group, whose tasks can be run again by the page that asks for a reason."""

    def dead_view(self, request: HttpRequest) -> HttpResponse:
        """Show all causes, those of one ``task``, or the one that ``cause`` names; or the group that ``group`` names."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        group, cause, now = request.GET.get("group", ""), request.GET.get("cause", ""), self.now_of(request)
        context = self._of_group(request, group, now) if group else self._of_causes(request, cause, now)
        context |= {
            "group": group,
            "cause": cause,
            "may_redrive": policy_of(request).allows(request.user, Action.REDRIVE),
        }
        title = _("Failed for one cause") if cause else pgettext("timeline", "Dead letters")
        return self.page(request, "dead", pgettext("timeline", "Failed alike") if group else title, now, context)

    def _of_group(self, request: HttpRequest, group: str, now: datetime) -> dict[str, Any]:
        """Tasks of one kind that failed alike; where all were run again, what came of them."""
        visible, reader = self.visible(request), Reader(policy_of(request), request.user)
        letters = dead_letters(visible, group) if "\x00" not in group else []
        again = run_again(visible, group, now=now) if "\x00" not in group else []
        if not (letters or again):
            raise Http404(_("There is no such group."))
        dead = visible.dead_letters(group)
        return {
            "groups": [shown_group(each, reader) for each in letters],
            "count": sum(each.count for each in letters),
            **_run_again(again),
            **self._rows(request, now, dead, visible.failed_alike(group)),
        }

    def _of_causes(self, request: HttpRequest, key: str, now: datetime) -> dict[str, Any]:
        """What failed, by cause; of one cause, its tasks too."""
        visible, reader = self.visible(request), Reader(policy_of(request), request.user)
        since, task = request.GET.get("since", ""), request.GET.get("task", "").replace("\x00", "")
        among = visible.filter(task_key=task) if task else visible
        among = _failed_since(among, since, now)
        causes = [each for each in causes_of(among) if not key or each.key == key]
        zone = timezone.get_current_timezone()
        context = {
            "causes": shown_causes(causes, among, reader, since=since, now=now, zone=zone),
            "count": sum(each.count for each in causes),
            "is_recent": bool(since),
        }
        if key:
            return context | self._rows(request, now, *(each.among(among) for each in causes))
        chosen = pgettext("timeline", "Task"), called(task).words, _where(since=since)
        return context | {
            "trying": [
                (each, called(each.task_key)) for each in in_retry(visible.filter(task_key=task) if task else visible)
            ],
            **_run_again(run_again(among, now=now)),
            "since": [(_where(since=value, task=task), name, value == since) for value, (name, _span) in SINCE.items()],
            "chips": [FilterChip(*chosen)] if task else [],
        }

    def _rows(
        self,
        request: HttpRequest,
        now: datetime,
        dead: ScheduledTaskQuerySet | None = None,
        alike: ScheduledTaskQuerySet | None = None,
    ) -> dict[str, Any]:
        """Tasks, those first that failed last; if all were run again, those that failed alike, each with what came of it."""

        def last(tasks: ScheduledTaskQuerySet | None) -> list[ScheduledTask]:
            return (
                [] if tasks is None else list(tasks.select_related("run").order_by("-finished_at", "-pk")[:AT_A_TIME])
            )

        reader, tasks = Reader(policy_of(request), request.user), last(dead)
        others = [] if tasks else last(alike)
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


def _run_again(found: list[RunAgain]) -> dict[str, Any]:
    return {
        "again": [(each, called(each.task_key), _where(group=each.group)) for each in found],
        "again_count": sum(each.total for each in found),
    }


def _where(**asked: str) -> str:
    return f"?{urlencode(given)}" if (given := {name: value for name, value in asked.items() if value}) else ""


def _failed_since(tasks: ScheduledTaskQuerySet, since: str, now: datetime) -> ScheduledTaskQuerySet:
    span = SINCE.get(since, SINCE[""])[1]
    return tasks if span is None else tasks.filter(finished_at__gt=now - span)


class RedriveForm(ReasonForm):
    """Why, and within which time they become due."""

    spread = forms.ChoiceField(
        label=gettext_lazy("They run"),
        choices=SPREADS,
        initial="0",
        help_text=gettext_lazy("One after the other, if what failed could not bear all of them at once."),
    )
    field_order = ("spread", "reason")


class Meant(NamedTuple):
    """What is to be run again: of one group, or of a cause; ``filters`` say the same to a bulk action."""

    dead: ScheduledTaskQuerySet
    filters: dict[str, Any]
    cause: Cause | None = None


class RedrivePages(Pages):
    """Who may run tasks again does so with all of a group, or of a cause, at once."""

    def redrive_view(self, request: HttpRequest) -> HttpResponse:
        """Count and ask; once the reason is given, run a few again, or have polls do it with many."""
        policy = policy_of(request)
        if not policy.allows(request.user, Action.REDRIVE):
            raise PermissionDenied
        meant, place, now = self._meant(request), place_in(request.POST.dict()), self.now_of(request)
        if place is None:
            place = Place(now, None, 0, 0, 0 if meant is None else meant.dead.count())
        if meant is None or not place.total:
            raise Http404(_("There is no such group."))
        form = self._redrive_form(request, now)
        if request.method == "POST" and form.is_valid():
            if place.total > PORTION:  # of bulk_actions
                return self._begin_redrive(request, meant, place, form)
            dead = meant.dead.filter(finished_at__lte=place.before)
            place = self._redrive(dead, place, form, policy, request.user)
            self._say(request, place)
            return HttpResponseRedirect(self.address("dead"))
        context = {
            "form": form,
            "has_errors": bool(form.errors),
            "alike": self._kinds(request, meant),
            "place": place,
            "fates": self._fates(request, meant.dead.filter(finished_at__lte=place.before), now),
            "bulk_id": bulk_id_of(request) if place.total > PORTION else None,  # of bulk_actions
            "back": self.address("dead"),
        }
        return self.page(request, "redrive", pgettext("timeline", "Run again"), now, context)

    def _meant(self, request: HttpRequest) -> Meant | None:
        """What the address names; None: nothing that is there."""
        group, visible = request.GET.get("group", ""), self.visible(request)
        if group:
            return Meant(visible.dead_letters(group), {"group": group}) if "\x00" not in group else None
        for cause in causes_of(visible) if (key := request.GET.get("cause", "")) else ():
            if cause.key == key:
                kinds = {each.task_key for each in cause.groups}
                filters: dict[str, Any] = {"groups": cause.fingerprints}
                return Meant(cause.among(visible), filters | ({"task": kinds.pop()} if len(kinds) == 1 else {}), cause)
        return None

    def _kinds(self, request: HttpRequest, meant: Meant) -> list[ShownKind]:
        """Its kinds of tasks; of each, whether the user may run it again."""
        reader = Reader(policy_of(request), request.user)
        found = (
            dead_letters(self.visible(request), meant.filters["group"]) if meant.cause is None else meant.cause.groups
        )
        return [shown_kind(each, reader) for each in found]

    def _fates(self, request: HttpRequest, dead: ScheduledTaskQuerySet, now: datetime) -> Fates:
        """What comes of the first of them."""
        tasks, reader = (
            list(dead.select_related("run").order_by("pk")[:LOOKED_AT]),
            Reader(policy_of(request), request.user),
        )
        return fates_of(tasks, reader, now=now, site=self.admin_site.name, using=self.alias)

    def _redrive_form(self, request: HttpRequest, now: datetime) -> RedriveForm:
        given = request.POST if request.method == "POST" else None
        return RedriveForm(given, now=now, zone=timezone.get_current_timezone())

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
        self, request: HttpRequest, meant: Meant, place: Place, form: RedriveForm
    ) -> HttpResponse:
        """Begin a bulk action with those that had failed when they were counted."""
        return begin_from(
            self,
            request,
            Action.REDRIVE,
            place,
            filters={**meant.filters, "ended_until": place.before.isoformat()},
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
