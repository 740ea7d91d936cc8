"""Delete deliveries that ended long ago, with the log of their tries."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from timeline.store.isolating import atomic
from timeline.webhooks.models import Attempt, Delivery, State

PRUNED: Final = 1000


def prune_deliveries(*, ended_before: datetime, using: str) -> int:
    """
    Delete a batch, one transaction. What another process has locked is left.

    Args:
        ended_before: Story time.
        using: Database alias.

    Returns:
        How many deliveries; 0: nothing is left.
    """
    ended = Delivery.objects.using(using).filter(ended_at__lt=ended_before).exclude(state=State.WAITING)
    some = list(ended.order_by("ended_at").values_list("pk", flat=True)[:PRUNED])
    if not some:
        return 0
    with atomic(using=using):
        gone = ended.filter(pk__in=some).locked()
        keys = [delivery.pk for delivery in gone]
        Attempt.objects.using(using).filter(delivery__in=keys).delete()
        return Delivery.objects.using(using).filter(pk__in=keys).delete()[0]
