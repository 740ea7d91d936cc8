"""The composition root: finds the timelines, connects the signals, puts the triggers."""

from __future__ import annotations

from importlib.util import find_spec

from django.apps import AppConfig
from django.utils.translation import pgettext_lazy


class TimelineConfig(AppConfig):
    """The app as Django sees it."""

    name = "timeline"
    verbose_name = pgettext_lazy("timeline", "Timeline")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect everything; runs when all models are there."""
        from django.core.signals import got_request_exception
        from django.db.models.signals import class_prepared, post_migrate

        from timeline import checks, receivers
        from timeline.hooks import check_features
        from timeline.registry import registry
        from timeline.signals import registered

        check_features()
        checks.register()
        registered.connect(receivers.on_register, sender=registry, dispatch_uid="timeline.on_register")
        class_prepared.connect(receivers.on_declare, dispatch_uid="timeline.on_declare")
        registry.discover()
        for definition in registry:  # Those that somebody registered before.
            receivers.on_register(label=definition.label)
        post_migrate.connect(receivers.on_migrate, sender=self, dispatch_uid="timeline.on_migrate")
        got_request_exception.connect(receivers.on_request_failed, dispatch_uid="timeline.on_request_failed")
        if find_spec("celery"):
            from timeline.signals import work_due
            from timeline.tasks.broker import hinter

            work_due.connect(hinter.work_due, dispatch_uid="timeline.hint")
