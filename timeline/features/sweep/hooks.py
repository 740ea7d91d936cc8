"""Where the sweep takes part: in the pauses of processes that poll, and in ``timeline.maintain``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from timeline.clocks import story_now
from timeline.features.sweep.verbs import remember_newest, sweep
from timeline.hooks import Hooks

SIZE: Final = 200  # Runs looked at at a time: some tens of milliseconds.
AT_ONCE: Final = 100  # Batches that are swept in one call of ``timeline.maintain``.


def _remember(using: str) -> None:
    remember_newest(using=using)


def _sweep_some(clock: Callable[[], datetime], using: str) -> bool:
    return sweep(size=SIZE, now=clock(), using=using).left


def _maintain(using: str) -> None:
    for _ in range(AT_ONCE):
        if not sweep(now=story_now(using), using=using).left:
            break


HOOKS = Hooks(wakes=(_remember,), between=(_sweep_some,), maintains=(_maintain,))
