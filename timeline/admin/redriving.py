"""
The page that redrives all that failed alike: it counts, and asks why. A few it redrives itself; of many it begins a bulk
action, which polls do, and leads to its page.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from timeline.admin.bulk_forms import begin_from, bulk_id_of
from timeline.admin.dead import shown_group
from timeline.admin.forms import ReasonForm
from timeline.admin.naming import actor_of
from timeline.admin.pages import Pages, policy_of
from timeline.admin.portions import PORTION, Place, place_in
from timeline.admin.readers import Reader
from timeline.clocks import story_now
from timeline.lifecycle import Reason
from timeline.operations.redriving_groups import redrive_those
from timeline.policy import Action, TimelinePolicy
from timeline.reading.dead_letters import dead_letters

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet
    from timeline.policy import User

SPREADS: Final = (
    ("0", gettext_lazy("all at once")),
    ("600", gettext_lazy("within ten minutes")),
    ("3600", gettext_lazy("within an hour")),
    ("21600", gettext_lazy("within six hours")),
)


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
            if place.total > PORTION:
                return self._begin_redrive(request, group, place, form)
            place = self._redrive(dead.filter(finished_at__lte=place.before), place, form, policy, request.user)
            self._say(request, place)
            return HttpResponseRedirect(self.address("dead"))
        context = {
            "form": form,
            "has_errors": bool(form.errors),
            "alike": self._groups_of(request, group),
            "place": place,
            "bulk_id": bulk_id_of(request) if place.total > PORTION else None,
            "back": self.address("dead"),
        }
        return self.page(request, "redrive", pgettext("timeline", "Redrive all"), story_now(self.alias), context)

    def _groups_of(self, request: HttpRequest, group: str) -> list[dict[str, Any]]:
        """What failed alike, by task, as far as the user may read it."""
        reader = Reader(policy_of(request), request.user)
        return [shown_group(each, reader) for each in dead_letters(self.visible(request), group)]

    def _redrive_form(self, request: HttpRequest) -> RedriveForm:
        given = request.POST if request.method == "POST" else None
        return RedriveForm(given, now=story_now(self.alias), zone=timezone.get_default_timezone())

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

    def _begin_redrive(self, request: HttpRequest, group: str, place: Place, form: RedriveForm) -> HttpResponse:
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
    """Within which they become due; None: at once."""
    return timedelta(seconds=int(form.cleaned_data["spread"])) or None
