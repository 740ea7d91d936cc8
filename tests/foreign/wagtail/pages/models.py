"""Pages of a child model, and of a child of that."""

from __future__ import annotations

from django.db import models
from wagtail.admin.panels import FieldPanel
from wagtail.models import Page


class PressPage(Page):
    """A press release."""

    embargo_at = models.DateTimeField(null=True, blank=True)

    content_panels = [*Page.content_panels, FieldPanel("embargo_at")]
    template = "page.html"


class StudyPage(PressPage):
    """A press release with a study."""

    sample_size = models.PositiveIntegerField(default=0)
    template = "page.html"
