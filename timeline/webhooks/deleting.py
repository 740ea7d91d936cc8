"""Delete endpoints, with their deliveries and the log of these."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from timeline.store.isolating import atomic
from timeline.webhooks.locking import lock_deliveries, lock_endpoints
from timeline.webhooks.models import Delivery, Endpoint


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
