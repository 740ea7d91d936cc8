"""
Lock: endpoints before their deliveries, so that nobody waits for somebody who waits for them.

Whoever waits for deliveries has the locks of their endpoints, all of them, taken before in the order of their keys. Whoever has
not passes over deliveries that are locked, and waits for nothing but their attempts after that. Attempts come last of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from timeline.webhooks.models import DeliveryQuerySet, Endpoint


def lock_endpoints(
    keys: Iterable[UUID], *, skip_locked: bool = False, to_delete: bool = False, using: str
) -> dict[UUID, Endpoint]:
    """
    Lock endpoints in the order of their keys, and read them. Deliveries are still written to them meanwhile.

    Args:
        keys: Of endpoints.
        skip_locked: Leave out those that somebody else has locked, rather than wait.
        to_delete: Wait for those who are writing deliveries, and let nobody begin to.
        using: Database alias.

    Returns:
        Key → endpoint, in that order; those that are there.
    """
    rows = Endpoint.objects.using(using).filter(pk__in=set(keys)).order_by("pk")
    return {row.pk: row for row in rows.select_for_update(no_key=not to_delete, skip_locked=skip_locked)}


def lock_keys(keys: Iterable[UUID], *, using: str) -> None:
    """The same for who reads no more of endpoints: in a migration, columns of later ones are not there yet."""
    rows = Endpoint.objects.using(using).filter(pk__in=set(keys)).order_by("pk")
    len(rows.select_for_update(no_key=True).values_list("pk", flat=True))


def lock_deliveries(deliveries: DeliveryQuerySet) -> None:
    """Lock deliveries, before attempts of theirs are written or deleted. The caller has the locks of their endpoints."""
    len(deliveries.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
