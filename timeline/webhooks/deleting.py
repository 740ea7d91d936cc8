"""Delete endpoints, with their deliveries and the log of these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from timeline.store.isolating import atomic
from timeline.webhooks.locking import lock_deliveries, lock_endpoints
from timeline.webhooks.models import Delivery, Endpoint

MAX_COUNTED: Final = 10_000  # Beyond it, it says that there are more.


def delete_endpoints(keys: Iterable[UUID], *, using: str) -> None:
    """
    Delete them, once those have committed who are writing deliveries to them, and so that nobody writes any meanwhile.

    Args:
        keys: Of endpoints; of those that are gone already, nothing is done.
        using: Database alias.
    """
    with atomic(using=using):
        locked = lock_endpoints(keys, to_delete=True, using=using)
        lock_deliveries(Delivery.objects.using(using).filter(endpoint__in=locked))
        Endpoint.objects.using(using).filter(pk__in=locked).delete()


def deliveries_to(keys: Iterable[UUID], *, using: str) -> int:
    """Count the deliveries that would be deleted with these endpoints: one more than ``MAX_COUNTED`` at most."""
    deliveries = Delivery.objects.using(using).filter(endpoint__in=list(keys)).order_by()
    return deliveries.values("pk")[: MAX_COUNTED + 1].count()
