"""How our processes collect garbage: seldom, and without searching objects that were loaded before."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from timeline.operations.collecting import seldom


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect garbage seldom within the block, in which a process does its work; otherwise this takes a tenth of its time."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*seldom(usual))
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
