"""Signs of senders: each says every few seconds that it is there, by the database's real clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db import DatabaseError, connections
from django.db.models import Exists, Q
from django.utils.translation import gettext as _

from timeline.clocks import MachineTime
from timeline.signals import Trouble
from timeline.timing import in_utc
from timeline.webhooks.models import Delivery, SenderSign, State

SIGN_EVERY: Final = 10.0  # Seconds.
SILENT: Final = timedelta(minutes=2)  # Without a sign; and so long has a delivery been due that nobody sends.
FORGOTTEN: Final = timedelta(hours=1)
UNSENT: Final = "unsent"


def give_sign(name: str, *, using: str) -> None:
    """
    Write down that a sender is there, and forget those that were killed.

    Args:
        name: Of its process.
        using: Database alias.
    """
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
    """
    When the oldest delivery was due that waits though nobody sends; None: somebody does, or none has waited for two minutes.

    What is sent to one endpoint that is disabled does not wait. One statement.
    """
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
    """
    Say that nobody sends though deliveries wait, with the remedy.

    Nothing is said while a new version runs before its migrations. Within a transaction of PostgreSQL's that is an error all
    the same: nothing can be asked in it any more.
    """
    try:
        since = unsent_since(now=now, using=using)
    except DatabaseError:
        if connections[using].in_atomic_block or _has_signs(using):
            raise
        return None
    if since is None:
        return None
    text = _("Webhooks: nobody sends the deliveries that wait, the oldest since %(at)s. Start timeline_webhooks.")
    return Trouble(kind=UNSENT, text=text % {"at": in_utc(since)})


def _has_signs(using: str) -> bool:
    return SenderSign._meta.db_table in connections[using].introspection.table_names()
