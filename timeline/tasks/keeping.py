"""Outcomes that cannot be written now, in a process of Celery's: kept from one message to the next, until they are."""

from __future__ import annotations

import os
import threading
from typing import Any

from celery.signals import worker_process_shutdown, worker_shutdown
from django.db import connections

from timeline.worker.outcome_keeper import OutcomeKeeper

_kept: dict[tuple[int, str], OutcomeKeeper] = {}  # By process, since those of a pool are forked, and database.
_lock = threading.Lock()


def keeper_of(using: str) -> OutcomeKeeper | None:
    """Give this process's own; None within a transaction, which what it does on a connection of its own could not see."""
    if connections[using].in_atomic_block:
        return None
    with _lock:
        return _kept.setdefault((os.getpid(), using), OutcomeKeeper(using))


@worker_process_shutdown.connect
@worker_shutdown.connect
def _close(**_extra: Any) -> None:
    """Try for a moment more. One signal is sent in each process of a pool, the other where there is none."""
    for (process, _using), unwritten in list(_kept.items()):
        if process == os.getpid():
            unwritten.close()
