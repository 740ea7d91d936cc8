"""A timeline that follows the expiry date of all pages."""

from __future__ import annotations

from wagtail.models import Page

from timeline import Timeline, at, task


class Expiry(Timeline):
    """Never started by Wagtail's tests."""

    entity = "wagtailcore.Page"
    starts_on = "page.published"
    exits = {"page.unpublished": "unpublished"}

    @task(at("expire_at"))
    def note(self, page: Page) -> None:
        """Do nothing."""
