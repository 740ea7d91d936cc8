"""The timeline of schedules, which our own workers run."""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS

from timeline.definition import Timeline, task
from timeline.ojs.crons import make


class OjsCron(Timeline):
    """Makes the jobs of schedules that were registered over HTTP."""

    name = "ojs_cron"

    @task()
    def make(self) -> dict[str, Any]:
        """Make the next job of a schedule, and plan the one after it."""
        using = self.task._state.db or DEFAULT_DB_ALIAS
        return make(self.task.payload["schedule"], self.task.nominal_at, now=self.now, using=using)
