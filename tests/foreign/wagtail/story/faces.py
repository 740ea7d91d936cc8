"""Our pages in Django's admin, the API, and Wagtail's own admin beside them."""

from __future__ import annotations

from io import StringIO

from acting import cancelled_by_hand
from django.core.management import CommandError, call_command
from django.urls import reverse
from pages.models import PressPage
from seeing import seen
from wagtail.models import Page

from story import rows
from story.site import USERS, browser, in_days, press, publish
from timeline.models import ScheduledTask

ALL = {"expiry.remind", "expiry.note", "press.announce"}


def page_of(address: str, **query: object) -> str:
    """Read a page as the editor."""
    answer = browser("editor").get(address, query)
    assert answer.status_code == 200, (address, answer.status_code)
    return answer.content.decode()


def tasks_of(name: str, address: str) -> set[str]:
    """Ask the API as somebody; gives the keys of what is ahead."""
    answer = browser(name).get(address)
    assert answer.status_code == 200, (address, answer.status_code)
    return {row["task"] for row in answer.json()["upcoming"]["results"]}


@seen("Our pages in Django's admin show the rows")
def our_pages() -> None:
    listed = page_of(reverse("admin:timeline_scheduledtask_changelist"))
    task = ScheduledTask.objects.for_entity(press(rows.TITLE)).open().first()
    shown = page_of(reverse("admin:timeline_scheduledtask_change", args=[task.pk]))

    assert rows.TITLE in listed
    assert all(key in listed for key in ALL)
    assert task.task_key in shown
    for label in ("wagtailcore.page", "pages.presspage"):
        entity = page_of(reverse("admin:timeline_scheduledtask_entity"), label=label, id=press(rows.TITLE).pk)
        assert all(key in entity for key in ALL), label


@seen("Cancelling in Django's admin asks first, and keeps the reason")
def cancel_in_admin() -> None:
    publish(PressPage, "Cancelled by hand", expire_at=in_days(9))
    task = ScheduledTask.objects.for_entity(press("Cancelled by hand")).open().get(task_key="expiry.remind")

    shown = cancelled_by_hand(
        browser("editor"), reverse("admin:timeline_scheduledtask_act"), task.pk, "No longer wanted"
    )

    task.refresh_from_db()
    assert (task.state, task.reason) == ("cancelled", "No longer wanted"), shown


@seen("Django's admin and Wagtail's own work as before")
def their_pages() -> None:
    key = press(rows.TITLE).pk
    page_of(reverse("admin:index"))
    page_of(reverse("wagtailadmin_home"))
    page_of(reverse("wagtailadmin_explore", args=[Page.objects.get(depth=2).pk]))
    page_of(reverse("wagtailadmin_pages:edit", args=[key]))
    page_of(reverse("wagtailadmin_pages:history", args=[key]))
    page_of(reverse("wagtailadmin_reports:site_history"))
    assert rows.TITLE in page_of(press(rows.TITLE).url)


@seen("The API answers an entity by the label of any model of its family")
def api_of_an_entity() -> None:
    key = press(rows.TITLE).pk
    for label in ("wagtailcore.page", "pages.presspage"):
        found = tasks_of("editor", f"/api/v1/entities/{label}/{key}/tasks/")
        assert found == ALL, (label, found)


@seen("The API shows a writer their own pages, and nobody else's")
def api_of_a_writer() -> None:
    writer, editor = USERS.objects.get(username="writer"), USERS.objects.get(username="editor")
    study = Page.objects.get(title="Study").pk

    assert tasks_of("writer", "/api/v1/me/tasks/") == {"expiry.remind", "expiry.note"}
    assert tasks_of("writer", f"/api/v1/users/{writer.pk}/tasks/") == {"expiry.remind", "expiry.note"}
    assert tasks_of("writer", f"/api/v1/entities/wagtailcore.page/{study}/tasks/") == {"expiry.remind", "expiry.note"}
    for hidden in (f"users/{editor.pk}", f"entities/wagtailcore.page/{press(rows.TITLE).pk}"):
        answer = browser("writer").get(f"/api/v1/{hidden}/tasks/")
        assert answer.status_code == 404, (hidden, answer.status_code)


@seen("The API cancels with a reason, and the log keeps it")
def api_cancels() -> None:
    task = ScheduledTask.objects.for_entity(press(rows.TITLE)).open().get(task_key="expiry.remind")

    answer = browser("editor").post(
        f"/api/v1/tasks/{task.pk}/cancel/", {"reason": "No longer wanted"}, content_type="application/json"
    )

    assert answer.status_code == 200, answer.content
    task.refresh_from_db()
    assert (task.state, task.reason) == ("cancelled", "No longer wanted")
    assert "editor" in task.actor, task.actor


@seen("timeline_install_beat, which needs Celery, says what to install or to run without it")
def no_beat() -> None:
    said = ""
    try:
        call_command("timeline_install_beat", stdout=StringIO())
    except CommandError as error:
        said = str(error)
    assert "timeline_worker" in said, said
