"""Announce, after the commit, that something is due now: whoever can start it need not wait for the next poll."""

from __future__ import annotations

from functools import partial

from django.db import transaction

from timeline.signals import work_due


def announce(*, using: str) -> None:
    """Send ``work_due`` once the current transaction has committed. What a listener raises is logged and harms nobody."""
    transaction.on_commit(partial(work_due.send_robust, sender=None, using=using), using=using, robust=True)
