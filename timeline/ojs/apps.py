"""The app as Django sees it: knows the timeline of jobs, and checks what it is set up with."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import pgettext_lazy


class OjsConfig(AppConfig):
    """``timeline.ojs``, beside ``timeline`` in ``INSTALLED_APPS``."""

    name = "timeline.ojs"
    label = "timeline_ojs"
    verbose_name = pgettext_lazy("timeline", "Open Job Specification")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect it; runs when all models are there."""
        from django.core import checks

        from timeline.ojs.checks import check_settings
        from timeline.ojs.kinds import Jobs
        from timeline.ojs.receivers import on_pruning
        from timeline.ojs.workflows import on_ending
        from timeline.registry import registry
        from timeline.signals import pruning, tasks_ending

        checks.register(check_settings)
        pruning.connect(on_pruning, dispatch_uid="timeline.ojs.upkeep")
        tasks_ending.connect(on_ending, dispatch_uid="timeline.ojs.ending")
        registry.register(Jobs)
