"""Outcomes that cannot be written now: a Celery process keeps them from one message to the next, until they are written."""

from __future__ import annotations

import os
import threading
from typing import Any

from celery.signals import worker_process_shutdown, worker_shutdown
from django.db import connections

from timeline.worker.outcome_keeper import OutcomeKeeper

_kept: dict[tuple[int, str], OutcomeKeeper] = {}  # By process (a pool forks its processes) and database.
_lock = threading.Lock()


def keeper_of(using: str) -> OutcomeKeeper | None:
    """The keeper of this process; None within a transaction, because the keeper's own connection could not see its rows."""
    if connections[using].in_atomic_block:
        return None
    with _lock:
        return _kept.setdefault((os.getpid(), using), OutcomeKeeper(using))


@worker_process_shutdown.connect
@worker_shutdown.connect
def _close(**_extra: Any) -> None:
    """Try for a few seconds more. One signal is sent in each process of a pool, the other if there is no pool."""
    for (process, _using), unwritten in list(_kept.items()):
        if process == os.getpid():
            unwritten.close()
