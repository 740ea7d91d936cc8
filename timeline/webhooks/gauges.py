"""What webhooks add to the metrics."""

from __future__ import annotations

from typing import Final

from django.db import router

from timeline.metrics.collecting import Gauge
from timeline.reading.attention import MAX_COUNTED
from timeline.webhooks.models import Delivery


def _waiting(using: str) -> float | None:
    if not router.allow_migrate_model(using, Delivery):
        return None
    return Delivery.objects.using(using).waiting()[:MAX_COUNTED].count()


GAUGES: Final = (Gauge("timeline_webhook_deliveries_waiting", "Deliveries still to be sent.", _waiting),)
