"""Which task this thread of execution is running now. Its handler may cause changes, which leave this task out."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.exceptions import TransitionNotAllowed
from timeline.models import ScheduledTask

_running: ContextVar[frozenset[UUID]] = ContextVar("timeline_running", default=frozenset())


def running() -> frozenset[UUID]:
    """Ids of the tasks that are being run here: none, one, or all of one call for many tasks."""
    return _running.get()


def refuse_own(tasks: Iterable[ScheduledTask], verb: str) -> None:
    """Raise ``TransitionNotAllowed`` if a handler wants to end its own task: its outcome could not be recorded any more."""
    for task in tasks:
        if task.pk in running():
            remedy = _("It is this handler's own; raise Cancel, Discard or RetryAfter instead.")
            raise TransitionNotAllowed(task.state, verb, remedy, task.pk)


def now_running(*task_ids: UUID) -> None:
    """Mark the tasks as being run in this context. The mark ends with the context."""
    _running.set(frozenset(task_ids))
