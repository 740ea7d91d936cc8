"""The page that counts, asks for a reason, and then acts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from timeline.admin.acting import MOST, WORDINGS, Count, ReasonForm, changed_meanwhile, count, form_for, perform
from timeline.admin.listing import row_of
from timeline.admin.naming import names_of
from timeline.admin.pages import Pages
from timeline.clocks import story_now
from timeline.models import ScheduledTask
from timeline.policy import Action, get_policy


class Confirming(Pages):
    """The page of actions."""

    def act_view(self, request: HttpRequest) -> HttpResponse:
        """Count and ask; once the reason is given, do it. A GET does neither."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        action = _action(request.POST.get("action", ""))
        if not get_policy().allows(request.user, action):
            raise PermissionDenied
        ids = _ids(request.POST.getlist("task"))
        if not ids:
            messages.warning(request, _("Choose the tasks first."))
            return redirect(self.list_as_left(request))
        counted = self._count(request, action, ids)
        now, confirmed = story_now(self.alias), "confirmed" in request.POST
        form = form_for(action)(request.POST if confirmed else None, now=now, zone=timezone.get_default_timezone())
        # What is confirmed was possible when it was counted first: all of it is done, or nothing.
        problem = changed_meanwhile(counted) if confirmed else ""
        if confirmed and not problem and form.is_valid():
            done = perform(action, counted.able, form.cleaned_data, actor=request.user.get_username(), using=self.alias)
            if done.tasks:
                return self._leave(request, action, done.tasks)
            problem = done.problem
            counted = self._count(request, action, ids)
        return self._ask(request, action, counted, form, problem)

    def _count(self, request: HttpRequest, action: Action, ids: list[UUID]) -> Count:
        tasks = list(self.visible(request).filter(pk__in=ids).select_related("run").in_order())
        if not tasks:
            raise Http404(_("There is no such task."))
        return count(action, tasks, len(ids), get_policy(), request.user)

    def _leave(self, request: HttpRequest, action: Action, tasks: list[ScheduledTask]) -> HttpResponse:
        messages.success(request, WORDINGS[action].done % {"count": len(tasks)})
        if "alone" in request.POST and len(tasks) == 1:
            return redirect(self.address("change", tasks[0].pk))
        return redirect(self.list_as_left(request))

    def _ask(
        self, request: HttpRequest, action: Action, counted: Count, form: ReasonForm, problem: str
    ) -> HttpResponse:
        now, payload = form.now, get_policy().sees_payload(request.user)
        tasks = [*counted.able, *(task for kept in counted.unable.values() for task in kept)]
        names = names_of((task.entity_ref for task in tasks), using=self.alias, site=self.admin_site.name)
        rows = {task.pk: row_of(task, names[task.entity_ref], now, payload) for task in tasks}
        alone = "alone" in request.POST and len(tasks) == 1
        context: dict[str, Any] = {
            "action": action,
            "wording": WORDINGS[action],
            "asks": WORDINGS[action].asks % {"count": len(counted.able)},
            "able": [rows[task.pk] for task in counted.able],
            "unable": [(why, [rows[task.pk] for task in kept]) for why, kept in counted.unable.items()],
            "gone": counted.gone,
            "form": form,
            "problem": problem,
            "back": self.address("change", tasks[0].pk) if alone else self.list_as_left(request),
            "where": request.POST.get("where", ""),
            "alone": alone,
        }
        return self.page(request, "act", str(WORDINGS[action].verb), now, context)


def _action(text: str) -> Action:
    try:
        return Action(text)
    except ValueError:
        raise Http404(_("There is no such action.")) from None


def _ids(texts: list[str]) -> list[UUID]:
    try:
        return list(dict.fromkeys(UUID(text) for text in texts[:MOST]))
    except ValueError:
        raise Http404(_("There is no such task.")) from None
