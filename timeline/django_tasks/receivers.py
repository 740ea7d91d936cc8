"""Tell the framework's receivers how tasks ended, once that is committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from timeline.django_tasks.framework import task_backends, task_finished
from timeline.django_tasks.functions import function_of
from timeline.django_tasks.results import results_of
from timeline.models import ScheduledTask
from timeline.signals import Ending


def on_ended(*, using: str, endings: Sequence[Ending], **_extra: Any) -> None:
    """Tasks have ended: send ``task_finished`` of those that are Django's. As a rule these were read in one statement."""
    ours = {ending.task_id: ending for ending in endings if function_of(ending.task_key) is not None}
    if not ours or not task_finished.has_listeners():
        return
    rows = list(ScheduledTask.objects.using(using).filter(pk__in=ours).order_by("finished_at", "pk"))
    for row, result in zip(rows, results_of(rows, using=using), strict=True):
        _tell(result, ours[row.pk].error)


def _tell(result: Any, error: BaseException | None) -> None:
    """As Django does, within the handling of the error, so that receivers can ask for it by ``sys.exc_info()``."""
    sender = type(task_backends[result.backend])
    if error is None:
        task_finished.send_robust(sender, task_result=result)
        return
    trace = error.__traceback__
    try:
        raise error
    except BaseException:  # noqa: BLE001 (it is the one that is raised here)
        task_finished.send_robust(sender, task_result=result)
    finally:
        error.__traceback__ = trace
