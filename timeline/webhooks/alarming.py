"""What the lists of endpoints and deliveries say at the top, if nobody sends what waits."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

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
