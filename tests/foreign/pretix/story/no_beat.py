"""What timeline_install_beat --remove leaves."""

from __future__ import annotations

from django_celery_beat.models import PeriodicTask
from seeing import seen


@seen("timeline_install_beat --remove has taken its rows away")
def removed() -> None:
    assert not PeriodicTask.objects.filter(task__startswith="timeline.").exists()
