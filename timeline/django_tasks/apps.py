"""The app as Django sees it: finds the functions, and tells the framework's receivers how tasks ended."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import pgettext_lazy


class DjangoTasksConfig(AppConfig):
    """``timeline.django_tasks``, beside ``timeline`` in ``INSTALLED_APPS``."""

    name = "timeline.django_tasks"
    label = "timeline_django_tasks"
    verbose_name = pgettext_lazy("timeline", "Django's tasks")

    def ready(self) -> None:
        """Connect it; runs when all models are there."""
        from timeline.django_tasks import receivers
        from timeline.django_tasks.discovery import discover
        from timeline.signals import tasks_ended

        tasks_ended.connect(receivers.on_ended, dispatch_uid="timeline.django_tasks.ended")
        discover()
