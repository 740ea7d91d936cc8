"""Signs of senders by the database's real clock, the trouble when nobody sends, what waits for a person; and pruning."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import router
from django.db.models import Exists, Q, QuerySet
from django.utils.translation import gettext as _

from timeline.clocks import MachineTime
from timeline.signals import Trouble
from timeline.store.transactions import atomic
from timeline.timing import told_time
from timeline.webhooks.models import Attempt, Delivery, Disabled, Endpoint, SenderSign, State
from timeline.webhooks.retry import PAUSED_AFTER

SIGN_EVERY: Final = 10.0  # Seconds.
SILENT: Final = timedelta(minutes=2)  # Without a sign; and so long has a delivery been due that nobody sends.
FORGOTTEN: Final = timedelta(hours=1)
UNSENT: Final = "unsent"

PRUNED: Final = 1000


def give_sign(name: str, *, using: str) -> None:
    """Write down that a sender is there, and forget those that were killed."""
    signs = SenderSign.objects.using(using)
    signs.bulk_create(
        [SenderSign(name=name, seen_at=MachineTime())],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["seen_at"],
    )
    signs.filter(seen_at__lt=MachineTime(-FORGOTTEN)).delete()


def take_leave(name: str, *, using: str) -> None:
    """Write down that a sender has stopped."""
    SenderSign.objects.using(using).filter(name=name).delete()


def unsent_since(*, now: datetime, using: str) -> datetime | None:
    """When the oldest delivery waiting unsent was due; None: somebody sends, or none has waited for two minutes."""
    signs = SenderSign.objects.using(using).filter(seen_at__gte=MachineTime(-SILENT, once=True))
    due = Delivery.objects.using(using).filter(state=State.WAITING, due_at__lte=now - SILENT)
    unleased = Q(leased_until=None) | Q(leased_until__lt=MachineTime(once=True))
    oldest = (
        due.filter(unleased, ~Exists(signs), endpoint__disabled_at=None)
        .order_by("due_at")
        .values_list("due_at", flat=True)
    )
    return oldest.first()


def find_trouble(*, now: datetime, using: str) -> Trouble | None:
    """Say that nobody sends though deliveries wait, with the remedy."""
    since = unsent_since(now=now, using=using)
    if since is None:
        return None
    text = _("Webhooks: nobody sends the deliveries that wait, the oldest since %(at)s. Start timeline_webhooks.")
    return Trouble(kind=UNSENT, text=text % {"at": told_time(since)})


def prune_deliveries(*, ended_before: datetime, using: str) -> int:
    """Delete a batch of deliveries in one transaction, not those locked elsewhere; how many, 0 if nothing is left."""
    ended = Delivery.objects.using(using).filter(ended_at__lt=ended_before).exclude(state=State.WAITING)
    some = list(ended.order_by("ended_at").values_list("pk", flat=True)[:PRUNED])
    if not some:
        return 0
    with atomic(using=using):
        gone = ended.filter(pk__in=some).locked()
        keys = [delivery.pk for delivery in gone]
        Attempt.objects.using(using).filter(delivery__in=keys).delete()
        return Delivery.objects.using(using).filter(pk__in=keys).delete()[0]


# Endpoints that are paused, and those that were disabled by nobody.
_FAILING: Final = Q(disabled_at=None, failures__gte=PAUSED_AFTER) | Q(
    disabled_code__in=sorted([Disabled.GONE, Disabled.FAILING])
)


def asks(using: str) -> list[tuple[str, QuerySet[Endpoint]]]:
    """Endpoints that wait for a person, where their table is."""
    if not router.allow_migrate_model(using, Endpoint):
        return []
    return [("endpoints", Endpoint.objects.using(using).filter(_FAILING).order_by("pk"))]
