"""How many queries pretix's own work takes; the same with ours installed and without."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django_scopes import scope

from story.shop import event, place


def counts() -> dict[str, int]:
    """Queries of saves of an order that no run is open about."""
    shop = event()
    with scope(organizer=shop.organizer):
        shop.disable_plugin("dunning")
        shop.save()
        order = place()
        order.save()  # What is looked up once only, is by now.
        with CaptureQueriesContext(connection) as whole:
            order.save()
        with CaptureQueriesContext(connection) as part:
            order.save(update_fields=["comment"])
        shop.enable_plugin("dunning")
        shop.save()
    return {"save of an order": len(whole), "save of its comment alone": len(part)}
