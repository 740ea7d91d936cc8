"""Spreading: the first tasks of many runs, which would be due at the same time, become due one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model

from timeline.definition import Definition
from timeline.models.facts import zone_of
from timeline.registry import registry
from timeline.store.creating import state_at


@dataclass(frozen=True, slots=True)
class Spreading:
    """
    Makes the first tasks of a run due later, within their windows. For tasks that are due already, it counts from now.

    Args:
        spread: The length of time within which they become due.
        share: The part of it for the entity of the run.
        now: Story time.
    """

    spread: timedelta
    share: timedelta
    now: datetime

    def of(self, columns: dict[str, Any], definition: Definition, entity: Model | None) -> dict[str, Any]:
        """The columns of a row, with its later due time."""
        begins, expires_at = max(columns["scheduled_at"], self.now), columns["expires_at"]
        hours = registry.task(columns["task_key"])[1].options.window
        due_at = begins + self.share
        if hours is not None:
            zone = zone_of(definition, entity)
            if hours.outside == "cancel" and not hours.is_open(columns["nominal_at"], zone):
                return columns  # The task is called off at its own time.
            due_at = hours.spread_over(hours.next_open(begins, zone), self.share, self.spread, zone)
        later = due_at - columns["scheduled_at"]
        return columns | {
            "scheduled_at": due_at,
            "state": state_at(due_at, self.now),
            "expires_at": None if expires_at is None else expires_at + later,
        }
