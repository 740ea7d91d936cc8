"""What falls due is run by a worker of its own."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from pages.models import StudyPage
from seeing import eventually, folder, seen, worker

from story.site import publish
from timeline.models import ScheduledTask

TITLE = "Embargo"


@seen("Due rows of both timelines are run by timeline_worker, each with an instance of its timeline's model")
def due_rows_run() -> str:
    began = timezone.now()
    page = publish(
        StudyPage, TITLE, expire_at=began + timedelta(days=2, seconds=2), embargo_at=began + timedelta(seconds=3)
    )
    tasks = ScheduledTask.objects.for_entity(page)

    with worker():
        eventually(lambda: tasks.filter(state="completed").count() == 2)

    results = {task.task_key: task.result for task in tasks.filter(state="completed")}
    assert results == {"expiry.remind": {"title": TITLE}, "press.announce": {"model": "pages.presspage"}}, results
    assert [task.task_key for task in tasks.open()] == ["expiry.note"]
    assert any(TITLE in mail.read_text() for mail in (folder() / "mail").iterdir())
    late = max(
        (task.started_at - max(task.scheduled_at, task.created_at)).total_seconds()
        for task in tasks.filter(state="completed")
    )
    return f"{late:.2f} s late at most"
