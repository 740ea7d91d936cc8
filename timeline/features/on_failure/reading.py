"""What ``explain`` says of a task that has failed, of the next revision of it, and of the handler of the failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from django.utils.translation import gettext as _

from timeline.features.on_failure.store import failed_before, handler_for, row_after
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.registry import registry
from timeline.timing import told_time

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


class Failure(NamedTuple):
    """Of a row of a handler, the task that has failed; of a task that has failed, the row of its handler. None: none."""

    failed: ScheduledTask | None
    handler: ScheduledTask | None


def failure_of(task: ScheduledTask, visible: ScheduledTaskQuerySet) -> Failure:
    """What a page of a task links, of what the reader may see. No query for a task that has to do with no failure."""
    failed, row = failed_before(task), None
    if task.state == State.DISCARDED:
        row = row_after(task, using=visible.db)
    return Failure(
        failed=None if failed is None else visible.filter(pk=failed).first(),
        handler=None if row is None else visible.filter(pk=row.pk).first(),
    )


def told_failure(task: ScheduledTask, *, using: str) -> Iterator[str]:
    """Say what came of a failure. One statement, or two, if its task has ``on_failure``."""
    if (failed := failed_before(task)) is not None:
        yield _("It runs because the task %(id)s has failed for good.") % {"id": failed}
    if handler_for(task) is None:
        return
    if task.state == State.DISCARDED:
        yield from _told(task, _("As it failed, %(task)s got the row %(id)s: %(state)s, due on %(at)s."), using)
    if task.previous_id is not None:
        before = ScheduledTask.objects.using(using).filter(pk=task.previous_id, state=State.DISCARDED).first()
        if before is not None:
            said = _("As the revision before it failed, %(task)s got the row %(id)s: %(state)s, due on %(at)s.")
            yield from _told(before, said, using)


def _told(failed: ScheduledTask, said: str, using: str) -> Iterator[str]:
    if (row := row_after(failed, using=using)) is not None:
        yield said % {
            "task": registry.titled(row.task_key),
            "id": row.pk,
            "state": State(row.state).label,
            "at": told_time(row.scheduled_at),
        }
