"""The site's people and pages, and what stands in their rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pages.models import PressPage
from wagtail.models import Page

USERS = get_user_model()


def make_users() -> None:
    """Somebody who may do all, and a writer who may do nothing but owns pages."""
    USERS.objects.create_superuser("editor", "editor@example.com", "editor")
    USERS.objects.create_user("writer", "writer@example.com", "writer")


def browser(name: str) -> Client:
    """A browser in which somebody is logged in."""
    client = Client()
    client.force_login(USERS.objects.get(username=name))
    return client


def in_days(days: float) -> datetime:
    """A moment, to the minute, as Wagtail's forms take it."""
    return (timezone.now() + timedelta(days=days)).replace(second=0, microsecond=0)


def home() -> Page:
    """The page below which all others are."""
    return Page.objects.get(depth=2)


def publish(model: type[Page], title: str, **fields: Any) -> Page:
    """Make a page of the writer's and publish it, by Wagtail's own functions."""
    page = home().add_child(
        instance=model(title=title, live=False, owner=USERS.objects.get(username="writer"), **fields)
    )
    page.save_revision().publish()
    return model.objects.get(pk=page.pk)


def form(page: dict[str, Any]) -> dict[str, Any]:
    """Fill in the form of a press release in Wagtail's admin."""
    moments = {
        name: timezone.localtime(value).strftime("%Y-%m-%d %H:%M")
        for name, value in page.items()
        if isinstance(value, datetime)
    }
    return {"slug": page["title"].lower().replace(" ", "-"), **page, **moments}


def edit(page: Page, **changes: Any) -> None:
    """Change a press release in Wagtail's admin, and publish it unless told otherwise."""
    button = changes.pop("button", "action-publish")
    values = {name: getattr(page, name) for name in ("title", "slug", "embargo_at", "expire_at")}
    wanted = {name: value for name, value in {**values, **changes}.items() if value is not None}
    answer = browser("editor").post(reverse("wagtailadmin_pages:edit", args=[page.pk]), {**form(wanted), button: "1"})
    assert answer.status_code == 302, answer.content.decode()[-3000:]


def press(title: str) -> PressPage:
    """Find a press release."""
    return PressPage.objects.get(title=title)
