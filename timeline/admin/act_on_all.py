"""Act on all tasks that the list asks for: few are changed at once, portion by portion; of many, a bulk action is begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.admin.actions import WORDINGS, carried_on_of, obstacle, perform
from timeline.admin.forms import ReasonForm, answers_of, form_for, looked_at
from timeline.admin.list_query import Question, asked
from timeline.admin.outcomes import outcomes
from timeline.admin.pages import Pages, policy_of
from timeline.admin.portions import Place, go_on, place_in
from timeline.admin.references import names_of
from timeline.admin.subject import Reader
from timeline.admin.task_list import ListRow, chips, row_of
from timeline.clocks import story_now
from timeline.features.bulk_actions.pages import begin_from, bulk_id_of  # of bulk_actions
from timeline.ids import uuid7
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.policy import POSSIBLE, Action
from timeline.reading.tallies import Amount
from timeline.store.counts import counts_by_state
from timeline.store.index_selection import ALL, KindsThere
from timeline.timing.offsets import Offset

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


ACTIONS: Final = list(WORDINGS)
BATCH: Final = 100  # Tasks that change together, or none of them: then each by itself.
SHOWN: Final = 10
MAX_COUNTED: Final = 10_000  # Of each state, for who may do nothing with them.
# More than so many are changed by polls, as a bulk action.
MANY: Final = 1000  # of bulk_actions


class MatchingPages(Pages):
    """Who may act on the tasks chosen may act on all that match, as far as each of them may be changed."""

    def matching_view(self, request: HttpRequest) -> HttpResponse:
        """Say what can be done with how many; ask for the reason; then act for a moment, and say how far that came."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        question = asked(request.GET).first_page()
        if question.payload:  # To find all, the payloads of all rows would be read.
            messages.warning(
                request, _("What payloads say has no index, so not all are acted on at once. Choose on the list.")
            )
            return HttpResponseRedirect(self.address("changelist") + question.where())
        place = place_in(request.POST.dict()) or Place(story_now(self.alias), None, 0, 0, 0, uuid7())
        tasks = self._matching(request, question, place)
        action = request.GET.get("action", "")
        return self._act_on(request, question, tasks, place) if action else self._offer(request, question, tasks)

    def _matching(self, request: HttpRequest, question: Question, place: Place) -> ScheduledTaskQuerySet:
        """What is meant: by the question, and there when it was counted."""
        tasks = self.visible(request).filter(created_at__lte=place.before, state__in=question.states)
        tasks = tasks.filter(pk__lt=place.last) if place.last else tasks
        return question.narrow(tasks, now=place.before, zone=timezone.get_current_timezone())

    def _offer(self, request: HttpRequest, question: Question, tasks: ScheduledTaskQuerySet) -> HttpResponse:
        policy, offers = policy_of(request), []
        may_act = any(policy.allows(request.user, action) for action in ACTIONS)
        most = ALL if may_act else MAX_COUNTED  # Who may do nothing need not know each.
        counts = counts_by_state(tasks, question.states, KindsThere(self.alias), most=most)
        amounts = [(state, Amount(min(counts[state], most), counts[state] > most)) for state in State if counts[state]]
        for action in ACTIONS:
            able = sum(counts.get(state, 0) for state in POSSIBLE[action])
            if able and policy.allows(request.user, action):
                where = f"{question.where()}&{urlencode({'action': action})}"
                offers.append((WORDINGS[action].asks % {"count": able}, WORDINGS[action].means, where))
        context = {
            **self._about(question),
            "counts": [(state, state.label, amount) for state, amount in amounts],
            "total": sum((amount for _state, amount in amounts), Amount()),
            "offers": offers,
        }
        title = pgettext("timeline", "All that match")
        return self.page(request, "matching", title, self.now_of(request), context)

    def _act_on(
        self, request: HttpRequest, question: Question, tasks: ScheduledTaskQuerySet, place: Place
    ) -> HttpResponse:
        action, policy = _action(request.GET["action"]), policy_of(request)
        if not policy.allows(request.user, action):
            raise PermissionDenied
        tasks = tasks.filter(state__in=POSSIBLE[action])
        if not place.total:
            meant = POSSIBLE[action] & question.states
            place = place._replace(total=counts_by_state(tasks, meant, KindsThere(self.alias)).total())
        if not place.total:
            raise Http404(_("There is no such task."))
        form = self._form_of(request, action)
        is_look = "look" in request.POST and place.after is None
        form = looked_at(form) if is_look else form
        if request.method == "POST" and not is_look and form.is_valid():
            if place.total > MANY and place.after is None:  # of bulk_actions
                return self._begin(request, action, question, place, form.cleaned_data)
            act = partial(self._change, action, form.cleaned_data, Reader(policy, request.user))
            place, is_over = go_on(tasks, place, act)
            if is_over:
                self._tell(request, action, place)
                return HttpResponseRedirect(self.address("changelist") + question.where())
        context = {
            **self._about(question),
            "form": form,
            "has_errors": bool(form.errors),
            "place": place,
            "bulk_id": bulk_id_of(request) if place.total > MANY else None,  # of bulk_actions
            "is_under_way": place.after is not None and not form.errors,
            "hidden": [(name, request.POST.get(name, "")) for name in form.fields] if place.after else [],
            "asks": WORDINGS[action].asks % {"count": place.total},
            "means": WORDINGS[action].means,
            "warning": _("What has completed is run again, too: what it does outside of the database happens twice.")
            if action == Action.REDRIVE and State.COMPLETED in question.states
            else "",
            "looks": action == Action.MOVE and not place.after,
            "rows": [] if place.after else self._some(request, tasks, question, action, form),
            "left_out": max(place.total - SHOWN, 0),
            "back": self.address("matching") + question.where(),
        }
        return self.page(request, "act_on_all", str(WORDINGS[action].verb), form.now, context)

    def _begin(  # of bulk_actions
        self, request: HttpRequest, action: Action, question: Question, place: Place, answers: Mapping[str, Any]
    ) -> HttpResponse:
        by = answers.get("by") or Offset()
        return begin_from(
            self,
            request,
            action,
            place,
            filters=question.as_filters(now=place.before, zone=timezone.get_current_timezone()),
            at=answers.get("at"),
            by_days=by.days,
            by_seconds=int(by.exact.total_seconds()),
            reason=answers["reason"],
        )

    def _form_of(self, request: HttpRequest, action: Action) -> ReasonForm:
        given = request.POST if request.method == "POST" else None
        return form_for(action)(given, now=self.now_of(request), zone=timezone.get_current_timezone())

    def _about(self, question: Question) -> dict[str, Any]:
        where = question.where()
        return {"question": question, "chips": chips(question), "list": self.address("changelist") + where}

    def _some(
        self, request: HttpRequest, tasks: ScheduledTaskQuerySet, question: Question, action: Action, form: ReasonForm
    ) -> list[ListRow]:
        some = list(tasks.first_of(POSSIBLE[action] & set(question.states), SHOWN))
        prefetch_related_objects(some, "run")
        names = names_of((task.entity_ref for task in some), using=self.alias, site=self.admin_site.name)
        becomes = outcomes(action, some, answers_of(form), now=form.now, using=self.alias)
        reader = Reader(policy_of(request), request.user)
        return [
            row_of(task, names[task.entity_ref], form.now, reader)._replace(becomes=becomes.get(task.pk))
            for task in some
        ]

    def _change(
        self, action: Action, answers: Mapping[str, Any], reader: Reader, tasks: Sequence[ScheduledTask]
    ) -> int:
        carried_on = carried_on_of([task.pk for task in tasks], using=self.alias) if action == Action.REDRIVE else ()
        able = [task for task in tasks if not obstacle(action, task, reader, carried_on)]
        batches = (able[begin : begin + BATCH] for begin in range(0, len(able), BATCH))
        return sum(self._perform(action, batch, answers, reader) for batch in batches)

    def _perform(
        self, action: Action, tasks: Sequence[ScheduledTask], answers: Mapping[str, Any], reader: Reader
    ) -> int:
        """All of a batch; if one of them has changed meanwhile, each by itself."""
        done = perform(action, tasks, answers, reader=reader, seen={}, using=self.alias)
        if done.problem and len(tasks) > 1:
            return sum(self._perform(action, [task], answers, reader) for task in tasks)
        return len(done.tasks)

    def _tell(self, request: HttpRequest, action: Action, place: Place) -> None:
        messages.success(request, WORDINGS[action].done % {"count": place.changed})
        if place.left:
            said = ngettext(
                "%(count)d task stays as it is: it had changed, or you may not do this with it.",
                "%(count)d tasks stay as they are: they had changed, or you may not do this with them.",
                place.left,
            )
            messages.warning(request, said % {"count": place.left})


def _action(text: str) -> Action:
    for action in ACTIONS:
        if action == text:
            return action
    raise Http404(_("There is no such action."))
