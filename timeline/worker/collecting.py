"""How our processes collect garbage: seldom, and without searching objects that were loaded before."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# A collection begins when so many more objects were made than freed: those of some hundred tasks. A group of forty tasks makes
# 700 objects, which is Python's default.
MANY: Final = 50_000


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect garbage seldom within the block, in which a process does its work; otherwise this takes a tenth of its time."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(MANY, usual[0]) if usual[0] else 0, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
