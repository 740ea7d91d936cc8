"""What was begun and not entered gives up the place that it holds until its end: nothing of it is half done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from timeline.definition.limits import HALF_DONE
from timeline.store.writing import Write


def without_places(writes: Sequence[Write]) -> Sequence[Write]:
    """
    Let those give up their places whose handlers were not entered, in this attempt or before, nor that of a revision whose
    place they took over: else a task that only looked and rests would hold up whatever it rests for.
    """
    return [replace(write, slot=0) if _gives_up(write) else write for write in writes]


def _gives_up(write: Write) -> bool:
    return bool(write.task.slot) and not write.entered and not write.task.held_until.endswith(HALF_DONE)
