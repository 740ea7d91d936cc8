"""Primary keys: UUID version 7, made here so that a row has its id before it is written."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterator
from typing import Final
from uuid import UUID

MANY: Final = 256

_lock = threading.Lock()
_last = 0


def uuid7() -> UUID:
    """
    The next id of this process: later ones sort after earlier ones, whatever the system's clock does.

    RFC 9562, 5.7: 48 bits of Unix milliseconds, 12 of sub-millisecond time (method 3), 62 random bits; each call adds one at
    least.
    """
    return uuid7s(1)[0]


def uuid7s(count: int) -> list[UUID]:
    """Make so many ids, as ``uuid7`` makes each: in a fraction of the time."""
    return [UUID(int=number) for number in _numbers(count)]


def uuid7_texts(count: int) -> list[str]:
    """Make so many ids as text, for rows that are written and not looked at: 32 hexadecimal digits each."""
    return [f"{number:032x}" for number in _numbers(count)]


def _numbers(count: int) -> list[int]:
    global _last
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    now = milliseconds << 12 | rest * 4096 // 1_000_000
    with _lock:
        first = max(now, _last + 1)
        _last = first + count - 1
    tails = struct.unpack(f">{count}Q", os.urandom(8 * count))
    return [
        (stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | tail >> 2
        for stamp, tail in enumerate(tails, first)
    ]


def fresh_ids() -> Iterator[UUID]:
    """Make ids for as long as they are asked for: one at first, then more at a time."""
    count = 1
    while True:
        yield from uuid7s(count)
        count = min(2 * count, MANY)
