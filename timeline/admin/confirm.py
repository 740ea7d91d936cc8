"""The page that counts, asks for a reason, and then acts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_protect

from timeline.admin.actions import (
    MAX_CHOSEN,
    ActionOutcome,
    Count,
    Deed,
    action_of,
    carried_on_of,
    changed_meanwhile,
    count,
    feature_actions,
    perform,
    twice,
    wordings,
)
from timeline.admin.forms import ReasonForm, answers_of, form_for, looked_at
from timeline.admin.outcomes import outcomes
from timeline.admin.pages import Pages, forget, keep, kept, policy_of
from timeline.admin.references import names_of
from timeline.admin.subject import Reader
from timeline.admin.task_list import row_of
from timeline.models import ScheduledTask
from timeline.policy import Action


class Confirming(Pages):
    """The page of actions."""

    def keeping_what_was_typed(self, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        """Wrap a view of forms: what somebody sends whose session has ended is asked anew once they have logged in."""

        @csrf_protect
        def look(request: HttpRequest) -> HttpResponse:
            if request.method == "POST" and not self.admin_site.has_permission(request):
                keep(request)
            return view(request)

        return look

    def act_view(self, request: HttpRequest) -> HttpResponse:
        """Count and ask; once the reason is given, do it. A GET asks what was kept before a login, and does nothing."""
        given = request.POST if request.method == "POST" else kept(request)
        if given is None:
            messages.warning(request, _("Choose the tasks first."))
            return redirect(self.address("changelist"))
        deed = _deed(given.get("action", ""))
        if not policy_of(request).allows(request.user, action_of(deed)):
            raise PermissionDenied
        ids = _ids(given.getlist("task"))
        if not ids:
            messages.warning(request, _("Choose the tasks first."))
            return redirect(self.list_as_left(given))
        if deed in feature_actions() and len(ids) > 1:
            raise Http404(_("There is no such action."))
        counted = self._count(request, deed, ids)
        if given is not request.POST:
            messages.info(request, _("You had to log in again. Nothing was changed; here is what you had asked for."))
            return self._ask(request, given, counted, self._form(request, deed, initial=given.dict()))
        forget(request)
        if "confirmed" not in given:
            return self._ask(request, given, counted, self._form(request, deed))
        if "look" in given:
            return self._ask(request, given, counted, looked_at(self._form(request, deed, given)))
        return self._act(request, given, counted, ids)

    def _act(self, request: HttpRequest, given: QueryDict, counted: Count, ids: list[UUID]) -> HttpResponse:
        """Do what is confirmed: all of what was counted first, as it was then, or nothing."""
        deed, seen = _deed(given.get("action", "")), _seen(given.getlist("seen"))
        form = self._form(request, deed, given)
        reader = Reader(policy_of(request), request.user)
        done = changed_meanwhile(counted, seen, reader, using=self.alias)
        if form.is_valid() and not done.problem:
            answers = form.cleaned_data | _said(deed, given)
            done = perform(deed, counted.able, answers, reader=reader, seen=seen, using=self.alias)
            if done.tasks:
                return self._leave(request, deed, done.tasks)
            counted = self._count(request, deed, ids)
        return self._ask(request, given, counted, form, done)

    def _form(
        self, request: HttpRequest, deed: Deed, given: QueryDict | None = None, *, initial: Any = None
    ) -> ReasonForm:
        zone = timezone.get_current_timezone()
        return form_for(deed)(given, initial=initial, now=self.now_of(request), zone=zone)

    def _count(self, request: HttpRequest, deed: Deed, ids: list[UUID]) -> Count:
        tasks = list(self.visible(request).filter(pk__in=ids).select_related("run").in_order())
        if not tasks:
            raise Http404(_("There is no such task."))
        carried_on = carried_on_of(ids, using=self.alias) if deed == Action.REDRIVE else ()
        return count(deed, tasks, len(ids), Reader(policy_of(request), request.user), carried_on)

    def _leave(self, request: HttpRequest, deed: Deed, tasks: list[ScheduledTask]) -> HttpResponse:
        messages.success(request, wordings()[deed].done % {"count": len(tasks), **_said(deed, request.POST)})
        if "alone" in request.POST and len(tasks) == 1:
            return redirect(self.address("change", tasks[0].pk))
        return redirect(self.list_as_left(request.POST))

    def _ask(
        self,
        request: HttpRequest,
        given: QueryDict,
        counted: Count,
        form: ReasonForm,
        done: ActionOutcome | None = None,
    ) -> HttpResponse:
        deed, now, reader = _deed(given.get("action", "")), form.now, Reader(policy_of(request), request.user)
        tasks = [*counted.able, *(task for kept in counted.unable.values() for task in kept)]
        names = names_of((task.entity_ref for task in tasks), using=self.alias, site=self.admin_site.name)
        becomes = outcomes(deed, counted.able, answers_of(form), now=now, using=self.alias)
        rows = {
            task.pk: row_of(task, names[task.entity_ref], now, reader)._replace(becomes=becomes.get(task.pk))
            for task in tasks
        }
        said = _said(deed, given)
        alone = "alone" in given and len(tasks) == 1
        context: dict[str, Any] = {
            "action": deed,
            "wording": wordings()[deed],
            "asks": wordings()[deed].asks % {"count": len(counted.able), **said},
            "said": said.items(),
            "able": [rows[task.pk] for task in counted.able],
            "unable": [(why, [rows[task.pk] for task in kept]) for why, kept in counted.unable.items()],
            "gone": counted.gone,
            "warning": twice(deed, counted.able),
            "form": form,
            "looks": deed == Action.MOVE,
            "problem": done.problem if done else "",
            "since": done.since if done else (),
            "has_errors": bool((done and done.problem) or form.errors),
            "back": self.address("change", tasks[0].pk) if alone else self.list_as_left(given),
            "where": given.get("where", ""),
            "alone": alone,
        }
        return self.page(request, "act", str(wordings()[deed].verb), now, context)


def _deed(text: str) -> Deed:
    for deed in wordings():
        if deed == text:
            return deed
    raise Http404(_("There is no such action."))


def _said(deed: Deed, given: QueryDict) -> dict[str, str]:
    """What its button says beside, as rows have it: browsers send line breaks as two characters."""
    theirs = feature_actions().get(deed)
    return {name: given.get(name, "").replace("\r\n", "\n") for name in theirs.given} if theirs else {}


def _ids(texts: list[str]) -> list[UUID]:
    try:
        return list(dict.fromkeys(UUID(text) for text in texts[:MAX_CHOSEN]))
    except ValueError:
        raise Http404(_("There is no such task.")) from None


def _seen(texts: list[str]) -> dict[UUID, int]:
    """Which step of each task the page showed, as ``id:seq``."""
    try:
        pairs = [text.split(":") for text in texts[:MAX_CHOSEN]]
        return {UUID(key): int(seq) for key, seq in pairs}
    except ValueError:
        raise Http404(_("There is no such task.")) from None
