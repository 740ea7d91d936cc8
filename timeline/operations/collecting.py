"""Collect garbage seldom while very many rows are made: hardly any of their objects is garbage before all are written."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# A collection begins when so many more objects were made than freed: those of a portion of some thousand entities. With
# Python's default of 700, these objects are searched again and again, and after a few thousand entities all objects of the
# process are searched.
MANY: Final = 50_000

_lock = threading.Lock()
_blocks = 0  # How many blocks are entered, in all threads.
_here = threading.local()  # How many of these this thread is in, as ``blocks``.
_usual = _ours = gc.get_threshold()


def seldom(usual: tuple[int, int, int]) -> tuple[int, int, int]:
    """Thresholds to collect seldom, in place of the usual ones. A host that collects even less, or never, keeps its own."""
    return (max(MANY, usual[0]) if usual[0] else 0, *usual[1:])


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """
    Collect garbage seldom within the block, in all threads of the process. Otherwise it takes a quarter of the time of the
    block.

    If somebody else sets thresholds meanwhile, these stay.
    """
    global _blocks, _usual, _ours
    with _lock:
        if not _blocks:
            _usual = gc.get_threshold()
            _ours = seldom(_usual)
            gc.set_threshold(*_ours)
        _blocks += 1
        _here.blocks = getattr(_here, "blocks", 0) + 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            _here.blocks -= 1
            _end_after_the_last()


def _end_after_the_last() -> None:
    if not _blocks and gc.get_threshold() == _ours:
        gc.set_threshold(*_usual)


def _begin_child() -> None:
    """A forked process has only the thread that forked it: the blocks of others never end there, nor does a held lock."""
    global _blocks, _lock
    _lock, _blocks = threading.Lock(), getattr(_here, "blocks", 0)
    _end_after_the_last()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
