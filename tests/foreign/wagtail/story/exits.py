"""What ends the runs of a page: Wagtail's unpublishing, however it comes about, and deleting."""

from __future__ import annotations

from datetime import timedelta

from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone
from pages.models import PressPage, StudyPage
from seeing import seen
from wagtail.models import Page

from story.site import browser, in_days, publish
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit

BOTH = {"expiry.remind": "unpublished", "expiry.note": "unpublished", "press.announce": "withdrawn"}


def endings(key: int) -> dict[str, str]:
    """How the cancelled tasks of a page came to be so; nothing may be open."""
    tasks = ScheduledTask.objects.filter(entity_id=str(key))
    assert not tasks.open().exists(), list(tasks.open())
    assert not TimelineRun.objects.filter(entity_id=str(key), ended_at=None).exists()
    return {task.task_key: task.reason for task in tasks if task.state == "cancelled"}


def release(model: type[PressPage], title: str) -> PressPage:
    """Publish a page that has open rows of both timelines."""
    page = publish(model, title, expire_at=in_days(9), embargo_at=in_days(1))
    assert ScheduledTask.objects.for_entity(page).open().count() == len(BOTH)
    return page


@seen("Unpublishing in Wagtail's admin ends the runs of both timelines")
def unpublished_by_hand() -> None:
    page = release(PressPage, "Unpublished by hand")

    answer = browser("editor").post(reverse("wagtailadmin_pages:unpublish", args=[page.pk]))

    assert answer.status_code == 302
    assert endings(page.pk) == BOTH, endings(page.pk)


@seen("The same for a page two models below the parent")
def grandchild_unpublished() -> None:
    page = release(StudyPage, "A study unpublished")

    page.unpublish()

    assert endings(page.pk) == BOTH, endings(page.pk)


@seen("The same where Wagtail was given the parent, Page")
def parent_unpublished() -> None:
    page = release(PressPage, "Unpublished as a page")

    Page.objects.get(pk=page.pk).unpublish()

    assert endings(page.pk) == BOTH, endings(page.pk)


@seen("An event told of the parent itself ends the runs of the child's timeline, too")
def told_of_the_parent() -> None:
    page = release(PressPage, "Told of the parent")

    emit("page.unpublished", Page.objects.get(pk=page.pk))

    assert endings(page.pk) == BOTH, endings(page.pk)


@seen("Wagtail's own publish_scheduled, which unpublishes what has expired, ends the runs")
def unpublished_by_schedule() -> None:
    page = release(PressPage, "Expired")
    Page.objects.filter(pk=page.pk).update(expire_at=timezone.now() - timedelta(minutes=1))

    call_command("publish_scheduled", verbosity=0)

    assert not PressPage.objects.get(pk=page.pk).live
    assert endings(page.pk) == BOTH, endings(page.pk)


@seen("A page without a timeline of its own follows that of its parent alone")
def plain_page() -> None:
    page = publish(Page, "Plain", expire_at=in_days(9))
    assert {task.task_key for task in ScheduledTask.objects.for_entity(page).open()} == {"expiry.remind", "expiry.note"}

    page.unpublish()

    assert endings(page.pk) == {"expiry.remind": "unpublished", "expiry.note": "unpublished"}


@seen("Deleting a page in Wagtail's admin, which unpublishes it first, ends the runs of both timelines")
def deleted() -> None:
    page = release(PressPage, "Deleted")

    answer = browser("editor").post(reverse("wagtailadmin_pages:delete", args=[page.pk]))

    assert answer.status_code == 302
    assert not Page.objects.filter(pk=page.pk).exists()
    assert endings(page.pk) == BOTH, endings(page.pk)
