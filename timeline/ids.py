"""Primary keys: UUID version 7, made here so that a row has its id before it is written."""

from __future__ import annotations

import os
import threading
import time
from uuid import UUID

_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    """
    Make the next id of this process: later ones sort after earlier ones, also within one millisecond.

    Layout of RFC 9562, section 5.7: 48 bits of Unix milliseconds, then 12 bits of sub-millisecond time (its method 3),
    then 62 random bits. The 60 bits of time step by at least one each call, whatever the system's clock does.
    """
    global _last
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    stamp = milliseconds << 12 | rest * 4096 // 1_000_000
    with _lock:
        if stamp <= _last:
            stamp = _last + 1
        _last = stamp
    random = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF
    return UUID(int=(stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | random)
