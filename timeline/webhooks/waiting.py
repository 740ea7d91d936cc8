"""What of webhooks waits for a person."""

from __future__ import annotations

from typing import Final

from django.db import router
from django.db.models import Q, QuerySet

from timeline.webhooks.models import Disabled, Endpoint
from timeline.webhooks.retry import PAUSED_AFTER

# Endpoints that are paused, and those that were disabled by nobody.
_FAILING: Final = Q(disabled_at=None, failures__gte=PAUSED_AFTER) | Q(
    disabled_code__in=sorted([Disabled.GONE, Disabled.FAILING])
)


def asks(using: str) -> list[tuple[str, QuerySet[Endpoint]]]:
    """Endpoints that wait for a person, where their table is."""
    if not router.allow_migrate_model(using, Endpoint):
        return []
    return [("endpoints", Endpoint.objects.using(using).filter(_FAILING).order_by("pk"))]
