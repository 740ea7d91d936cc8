"""What falls due is run by a worker of its own, outside of any scope."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from django_scopes import scopes_disabled
from seeing import eventually, folder, seen, worker

from story.shop import place
from timeline.models import ScheduledTask


@seen("A due row is run by timeline_worker; a handler that forgets the scope fails, is tried again, and says why")
def due_rows_run() -> str:
    order = place(tickets=3)
    with scopes_disabled():
        order.expires = timezone.now() + timedelta(seconds=2)
        order.save(update_fields=["expires"])
    tasks = ScheduledTask.objects.for_entity(order)

    with worker():
        eventually(lambda: tasks.filter(state="completed").exists() and tasks.filter(state="retryable").exists())

    remind, note = tasks.get(task_key="payment.remind"), tasks.get(task_key="payment.note")
    assert (remind.state, remind.result) == ("completed", {"tickets": 3})
    assert note.failures == 1
    assert "ScopeError" in str(note.error), note.error
    assert any(order.code in mail.read_text() for mail in (folder() / "mail").iterdir())
    return f"{(remind.started_at - max(remind.scheduled_at, remind.created_at)).total_seconds():.2f} s late"


@seen("The guard looks at the order as it is then: one that was paid without a word is not reminded")
def guarded() -> None:
    order = place()
    with scopes_disabled():
        type(order)._base_manager.filter(pk=order.pk).update(status="p")
        order.refresh_from_db()
        order.expires = timezone.now() + timedelta(seconds=1)
        order.save(update_fields=["expires"])
    tasks = ScheduledTask.objects.for_entity(order)

    with worker():
        eventually(lambda: not tasks.open().exists())

    assert {(task.state, task.reason) for task in tasks.filter(finished_at__isnull=False)} == {
        ("cancelled", "only_if is_pending")
    }, list(tasks.values_list("task_key", "state", "reason"))
