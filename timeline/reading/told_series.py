"""What is said of a task that is repeated: its number, which come next, and which one followed it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext as _

from timeline.exceptions import UnknownTask
from timeline.models import ScheduledTask
from timeline.reading.outlook import foreseen_of
from timeline.registry import registry
from timeline.timing import told_time


def is_repeated(task: ScheduledTask) -> bool:
    """Whether the task is repeated, as far as this process knows."""
    try:
        return task.run_id is not None and registry.task(task.task_key)[1].is_repeated
    except UnknownTask:
        return False


def series_ahead(task: ScheduledTask, *, now: datetime, using: str) -> Iterator[str]:
    """For an open task, say when the next ones are expected. Nothing if it is not repeated."""
    if task.run is None or not is_repeated(task):
        return
    outlooks = foreseen_of([task.run], now=now, using=using)
    coming = [item.expected_at for _run, item in outlooks if item.task_key == task.task_key and item.expected_at]
    if coming:
        yield _("It is number %(number)s of its series. The next are foreseen on %(times)s.") % {
            "number": task.occurrence,
            "times": ", ".join(told_time(at) for at in coming),
        }
    else:
        yield _("It is number %(number)s of its series, and the last.") % {"number": task.occurrence}


def series_after(task: ScheduledTask, *, using: str) -> str | None:
    """For an ended task, say which task of its series followed it; None: none did."""
    if not is_repeated(task) or not task.occurrence.isdecimal():
        return None
    following = ScheduledTask.objects.using(using).filter(
        run=task.run_id, task_key=task.task_key, occurrence=str(int(task.occurrence) + 1)
    )
    later = following.order_by("-revision").first()
    if later is None:
        return None
    return _("Number %(number)s of its series followed, due on %(at)s.") % {
        "number": later.occurrence,
        "at": told_time(later.scheduled_at),
    }
