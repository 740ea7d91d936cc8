"""The page of limits: who holds the places of each key and how many wait; and a key that is closed opened."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import ngettext, pgettext

from timeline import shortcuts
from timeline.admin.pages import FeaturePage, FeaturePages
from timeline.admin.references import actor_of, called
from timeline.exceptions import InvalidInput
from timeline.features.limits.places import limited_keys
from timeline.features.limits.reading import limits
from timeline.store.changes import MAX_REASON


class LimitPages(FeaturePages):
    """What competes for places, for who may see all tasks; who may open limits finds a form at those that are closed."""

    def limits_view(self, request: HttpRequest) -> HttpResponse:
        """Show the limits; or open the one that was sent, for the reason given."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        may_open = request.user.has_perm("timeline.open_limit")
        if request.method == "POST":
            if not may_open:
                raise PermissionDenied
            return self._open(request)
        found = sorted(limits(using=self.alias), key=lambda entry: (not entry.is_closed, entry.key))
        named = [(entry, [(place, called(place.task_key)) for place in entry.places]) for entry in found]
        context: dict[str, Any] = {"limits": named, "may_open": may_open, "longest": MAX_REASON}
        return self.page(request, "limits", pgettext("timeline", "Limits"), self.now_of(request), context)

    def beside_list(self, request: HttpRequest) -> Iterable[tuple[str, str]]:
        """The page, where anything has a limit."""
        if request.user.has_perm("timeline.view_scheduledtask") and limited_keys():
            yield pgettext("timeline", "Limits"), self.address("limits")

    def _open(self, request: HttpRequest) -> HttpResponse:
        """Open a key that those keep closed who were on the page, and say so."""
        key, reason = request.POST.get("key", ""), request.POST.get("reason", "").strip()
        seen, actor = {pk for pk in map(_as_id, request.POST.getlist("seen")) if pk}, actor_of(request.user)
        try:
            done = shortcuts.open_limit(key, reason=reason, actor=actor, seen=seen, using=self.alias)
        except InvalidInput as error:
            messages.error(request, str(error))
        else:
            said = ngettext("%(count)d place is free.", "%(count)d places are free.", len(done))
            messages.success(request, said % {"count": len(done)})
        return HttpResponseRedirect(self.address("limits"))

    ROUTES = (FeaturePage("limits", "limits/", limits_view, is_live=True, takes_forms=True),)


PAGES = (LimitPages,)


def _as_id(text: str) -> UUID | None:
    with suppress(ValueError):
        return UUID(text)
    return None
