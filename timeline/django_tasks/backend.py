"""``TimelineBackend``: what Django's settings name. It is made while functions are decorated, before the models are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error

from timeline.definition.names import MAX_NAME
from timeline.django_tasks.framework import BaseTaskBackend, task_enqueued
from timeline.django_tasks.functions import know
from timeline.django_tasks.options import options_from


class TimelineBackend(BaseTaskBackend):  # type: ignore[misc]  # Django's, or that of a package.
    """
    Each task that is enqueued is a row without an entity, run by the workers of this package.

    ``OPTIONS`` has ``retry`` (what ``Retry`` takes, as a dict; left out: tried once), ``atomic`` (False), ``timeout`` and
    ``expires`` as ``@task`` of a timeline has them, ``modules`` with functions beside those in ``tasks`` of installed apps, and
    ``database``, the alias of the database that rows are written to.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        self.declared = options_from(self.options, alias)

    def validate_task(self, task: Any) -> None:
        """Refuse what cannot be run (``InvalidTask``), and know the function of what can."""
        super().validate_task(task)
        know(task)

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Write its row, in the caller's transaction if there is one."""
        from timeline.django_tasks.rows import write

        self.validate_task(task)
        result = write(task, args, kwargs, self)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """How a task stands. After a redrive, the id leads to the latest revision."""
        from timeline.django_tasks.results import result_by_id

        return result_by_id(result_id, self)

    def check(self, **_extra: Any) -> list[CheckMessage]:
        """
        ``timeline_django_tasks.E001``: an app that the backend needs is not installed. ``timeline_django_tasks.E002``: the name
        of a queue is too long.
        """
        needed = [name for name in ("timeline", "timeline.django_tasks") if not apps.is_installed(name)]
        found: list[CheckMessage] = [
            Error(
                f"The backend {self.alias!r} in TASKS needs the app {name!r}.",
                hint=f"Add {name!r} to INSTALLED_APPS.",
                id="timeline_django_tasks.E001",
            )
            for name in needed
        ]
        for queue in sorted(self.queues):
            if not 0 < len(queue) <= MAX_NAME:
                said = f"The backend {self.alias!r} in TASKS has the queue {queue!r:.80}."
                hint = f"Use 1 to {MAX_NAME} characters."
                found.append(Error(said, hint=hint, id="timeline_django_tasks.E002"))
        return found
