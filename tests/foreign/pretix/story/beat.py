"""What timeline_install_beat leaves in beat's tables."""

from __future__ import annotations

from django_celery_beat.models import PeriodicTask
from seeing import seen


@seen("timeline_install_beat has written its rows")
def installed() -> str:
    names = sorted(PeriodicTask.objects.filter(task__startswith="timeline.").values_list("task", flat=True))
    assert names == ["timeline.maintain", "timeline.poll"], names
    return ", ".join(names)
