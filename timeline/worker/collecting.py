"""How a process of ours collects garbage: seldom, and without looking each time at all that was loaded before it began."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# So many more objects made than freed: those of some hundred tasks. Python's own 700 are those of one group of forty.
MANY: Final = 50_000


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Let garbage be collected seldom within the block, in which a process spends its life: else a tenth of it goes there."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(MANY, usual[0]) if usual[0] else 0, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
