"""The composition root: finds the timelines, connects the signals, puts the triggers."""

from __future__ import annotations

from importlib.util import find_spec

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TimelineConfig(AppConfig):
    """The app as Django sees it."""

    name = "timeline"
    verbose_name = _("timeline")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect everything; runs when all models are there."""
        from django.db.models.signals import post_delete, post_migrate, post_save, pre_save

        from timeline import checks, receivers
        from timeline.registry import registry

        checks.register()
        registry.discover()
        pre_save.connect(receivers.before_save, dispatch_uid="timeline.before_save")
        post_save.connect(receivers.on_save, dispatch_uid="timeline.on_save")
        post_delete.connect(receivers.on_delete, dispatch_uid="timeline.on_delete")
        post_migrate.connect(receivers.on_migrate, sender=self, dispatch_uid="timeline.on_migrate")
        if find_spec("celery"):
            from timeline.signals import work_due
            from timeline.tasks.hinting import hinter

            work_due.connect(hinter.work_due, dispatch_uid="timeline.hint")
