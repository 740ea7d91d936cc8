"""Give up the places, held until the end, of tasks that were begun and not entered: nothing of them is half done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from timeline.definition.limits import HALF_DONE
from timeline.store.writing import Write


def without_places(writes: Sequence[Write]) -> Sequence[Write]:
    """
    Let tasks give up their places if their handler was not entered, in this attempt or before, nor the handler of a revision
    whose place they took over. Else a task that only looked and rests would hold up the very tasks that it waits for.
    """
    return [replace(write, slot=0) if _gives_up(write) else write for write in writes]


def _gives_up(write: Write) -> bool:
    return bool(write.task.slot) and not write.entered and not write.task.held_until.endswith(HALF_DONE)
