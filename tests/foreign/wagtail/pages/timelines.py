"""One timeline about all pages, one about press releases, and what tells them."""

from __future__ import annotations

from django.core.mail import send_mail
from django.db.models import Model
from django.dispatch import receiver
from wagtail.models import Page
from wagtail.signals import page_published, page_unpublished

from pages.models import PressPage
from timeline import Timeline, at, before, task
from timeline.shortcuts import emit


class Expiry(Timeline):
    """What is to be done before a page expires."""

    entity = "wagtailcore.Page"
    starts_on = "page.published"
    exits = {"page.unpublished": "unpublished"}
    owner = "owner"

    @task(before("expire_at", days=2), atomic=False)
    def remind(self, page: Page) -> dict[str, str]:
        """Tell the owner."""
        send_mail(f"About to expire: {page.title}", "Is it still wanted?", None, [page.owner.email])
        return {"title": page.title}

    @task(at("expire_at"))
    def note(self, page: Page) -> dict[str, str]:
        """Write down which model the handler was given."""
        return {"model": page._meta.label_lower}


class Press(Timeline):
    """What is to be done when an embargo ends."""

    entity = "pages.PressPage"
    starts_on = "page.published"
    exits = {"page.unpublished": "withdrawn"}

    @task(at("embargo_at"))
    def announce(self, page: PressPage) -> dict[str, str]:
        """Write down which model the handler was given."""
        return {"model": page._meta.label_lower}


@receiver(page_published)
def on_published(*, sender: type[Model], instance: Page, **_extra: object) -> None:
    """Wagtail sends this with an instance of the page's own model."""
    emit("page.published", instance)


@receiver(page_unpublished)
def on_unpublished(*, sender: type[Model], instance: Page, **_extra: object) -> None:
    """The same."""
    emit("page.unpublished", instance)
