"""Queues of runs: a run that the clock began waits until earlier runs of its timeline have ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from timeline.models import TimelineRun

# Stands in place of the name of an event in a row that waits. No event has such a name: names have no blank and no colon.
_ENDS: Final = "run:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """
    A task rests until an earlier run of its timeline has ended.

    Args:
        timeline: Name of the timeline.
        key: Key of the earlier run.
    """

    timeline: str
    key: str

    @property
    def columns(self) -> dict[str, str | bool]:
        """The columns of the row of the task."""
        awaits: dict[str, str | bool] = {"awaits": end_of(self.timeline), "awaits_key": self.key}
        return awaits | {"awaits_label": "", "awaits_id": "", "awaits_other": False}


def end_of(timeline: str) -> str:
    """The text in the row of a task that waits for the end of a run of this timeline."""
    return _ENDS + timeline


def have_ended(those: Sequence[Behind], *, using: str) -> list[bool]:
    """For each item, whether the earlier run has ended. One statement."""
    open_runs = TimelineRun.objects.using(using).open().filter(entity_label="", entity_id="", once=True)
    asked = open_runs.filter(timeline__in={each.timeline for each in those}, key__in={each.key for each in those})
    there = set(asked.values_list("timeline", "key"))
    return [(each.timeline, each.key) not in there for each in those]


def clear(run_ids: Collection[UUID], *, using: str) -> None:
    """Write that no earlier run is in the way of these runs. One statement, or none if there are no runs."""
    if run_ids:
        TimelineRun.objects.using(using).filter(pk__in=run_ids, is_cleared=False).update(is_cleared=True)
