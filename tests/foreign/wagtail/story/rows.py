"""Rows of both timelines, made by what people do in Wagtail's admin."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

from django.core.management import call_command
from django.urls import reverse
from pages.models import PressPage, StudyPage
from seeing import seen
from wagtail.models import Page

from story.site import browser, edit, form, home, in_days, press, publish
from timeline.models import ScheduledTask

TITLE = "Harvest"


def times(page: Page) -> dict[str, object]:
    """When the open tasks of a page are due, whichever model of the family they name."""
    return {task.task_key: task.scheduled_at for task in ScheduledTask.objects.for_entity(page).open()}


def expected(page: PressPage) -> dict[str, object]:
    """When they should be."""
    return {
        "expiry.remind": page.expire_at - timedelta(days=2),
        "expiry.note": page.expire_at,
        "press.announce": page.embargo_at,
    }


@seen("A page published in Wagtail's admin with an expiry date has the rows of both timelines")
def published() -> None:
    address = reverse("wagtailadmin_pages:add", args=["pages", "presspage", home().pk])
    values = form({"title": TITLE, "expire_at": in_days(10), "embargo_at": in_days(1)})

    answer = browser("editor").post(address, {**values, "action-publish": "1"})

    assert answer.status_code == 302, answer.content.decode()[-3000:]
    page = press(TITLE)
    assert page.live
    assert times(page) == expected(page), times(page)


@seen("Moving the dates in Wagtail's admin moves the rows")
def moved() -> None:
    edit(press(TITLE), expire_at=in_days(20), embargo_at=in_days(3))

    page = press(TITLE)
    assert page.expire_at == in_days(20)
    assert times(page) == expected(page), times(page)


@seen("A draft with other dates moves nothing")
def drafted() -> None:
    before = times(press(TITLE))

    edit(press(TITLE), expire_at=in_days(30), button="action-save")

    assert press(TITLE).get_latest_revision_as_object().expire_at == in_days(30)
    assert times(press(TITLE)) == before


@seen("Saving the parent alone moves the rows of the parent, and leaves the child's")
def parent_saved() -> None:
    page = Page.objects.get(title=TITLE)
    page.expire_at = in_days(25)
    page.save()

    assert times(press(TITLE)) == expected(press(TITLE))


@seen("A date taken away leaves no row; one set again has its rows again")
def date_taken_away() -> None:
    page = Page.objects.get(title=TITLE)
    page.expire_at = None
    page.save()
    assert set(times(press(TITLE))) == {"press.announce"}

    page.expire_at = in_days(20)
    page.save()

    assert times(press(TITLE)) == expected(press(TITLE))


@seen("The rows are found by an instance and by the label of any model of the family")
def found() -> None:
    page = publish(StudyPage, "Study", expire_at=in_days(9), embargo_at=in_days(1))
    family = [page, PressPage.objects.get(pk=page.pk), Page.objects.get(pk=page.pk)]
    for model in family:
        assert times(model) == expected(page), (model, times(model))
    for label in ("wagtailcore.page", "pages.presspage", "pages.studypage"):
        told = StringIO()
        call_command("timeline_explain", label, str(page.pk), stdout=told)
        assert all(key in told.getvalue() for key in expected(page)), (label, told.getvalue())
