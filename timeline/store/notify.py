"""Announce, after the commit, that a task is due now or soon: a process that can start it need not wait for the next poll."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Final

from django.db import DatabaseError, InterfaceError, connections, transaction
from django.dispatch import Signal

from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.signals import CHANNEL, work_due, work_soon

logger = logging.getLogger("timeline")
GAP: Final = 0.05  # Seconds between notifications of this process; a listener looks again after a little more.
_next: dict[str, float] = {}  # Alias → when this process notifies again.


def announce(*, using: str) -> None:
    """Send ``work_due`` after the current transaction has committed. If a receiver raises, this is logged and has no effect."""
    transaction.on_commit(partial(_tell, work_due, using), using=using, robust=True)


def announce_times(times: Iterable[datetime], *, now: datetime, using: str) -> None:
    """Announce rows with new due times, if the first is due now, or before the next poll."""
    first = min(times, default=None)
    if first is None or first >= now + get_settings().POLL_INTERVAL:
        return
    signal = work_due if first <= now else work_soon
    transaction.on_commit(partial(_tell, signal, using), using=using, robust=True)


def _tell(signal: Signal, using: str) -> None:
    _notify(using)
    signal.send_robust(sender=None, using=using)


def _notify(using: str) -> None:
    """
    Wake other processes, on PostgreSQL; not inside a transaction, as commits that notify wait for each other. It uses no
    cursor of Django's, so that code of the host's that counts or forbids queries after a commit does not see it.
    """
    if not dialect_of(using).can_notify or monotonic() < _next.get(using, 0.0):
        return
    connection = connections[using]
    try:
        if connection.in_atomic_block or not connection.get_autocommit():
            return
        _next[using] = monotonic() + GAP
        with connection.wrap_database_errors, connection.connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")
    except (DatabaseError, InterfaceError) as error:
        logger.debug("Nobody was notified; polls find it all the same. %s", error)
