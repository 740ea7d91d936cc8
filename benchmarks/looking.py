"""Whom ``every_page`` has look at the pages: an operator who sees two timelines, and somebody who owns many entities."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Q

from timeline import Timeline, task
from timeline.policy import TimelinePolicy

SEEN: Final = ("trial", "owned")  # Timelines of which the operator sees the tasks.


class Owned(Timeline):
    """About what has an owner of its own among the models that the site has."""

    entity = "admin.LogEntry"
    owner = "user"

    @task(only_if=lambda entry: bool(entry.object_repr))
    def renew(self, entry: Any) -> None: ...

    @task()
    def check(self, entry: Any) -> None: ...

    @task()
    def tell(self, entry: Any) -> None: ...


class Operators(TimelinePolicy):
    """Shows those who may view tasks, unless they are superusers, the tasks of two timelines."""

    def visible(self, tasks: Any, user: Any) -> Any:
        """Narrow down to these."""
        tasks = super().visible(tasks, user)
        if user.is_superuser or not self._has(user, "view_scheduledtask"):
            return tasks
        return tasks.filter(Q(task_key__startswith=f"{SEEN[0]}.") | Q(task_key__startswith=f"{SEEN[1]}."))

    def sees_timeline(self, user: Any, timeline: str, ref: Any, *, using: str) -> bool:
        """The same of what is foreseen."""
        seen = user.is_superuser or not self._has(user, "view_scheduledtask") or timeline in SEEN
        return seen and super().sees_timeline(user, timeline, ref, using=using)
