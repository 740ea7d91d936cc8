"""What the lists of endpoints and deliveries say at the top, if nobody sends what waits; and what both refuse."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.webhooks.signing_on import unsent_since
from timeline.webhooks.theming import Themed


class Alarming(Themed):
    """Has a list that says so."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Add since when."""
        using = self.get_queryset(request).db
        since = unsent_since(now=story_now(using), using=using)
        return super().changelist_view(request, {"unsent_since": since, **(extra_context or {})})

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Refuse first who may see none: Django says before that whether there is such a one."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return super().history_view(request, object_id, extra_context)

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Act on those that were selected, unless one of them is none that could be here: Django would look for it."""
        try:
            for key in request.POST.getlist("_selected_action"):
                self.opts.pk.clean(key, None)
        except ValidationError:
            self.message_user(request, _("Nothing was changed: one of those selected is not here."), messages.WARNING)
            return None
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer
