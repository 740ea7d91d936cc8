"""The app as Django sees it: hears what the package tells, and checks what it is set up with."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import pgettext_lazy


class WebhooksConfig(AppConfig):
    """``timeline.webhooks``, beside ``timeline`` in ``INSTALLED_APPS``."""

    name = "timeline.webhooks"
    label = "timeline_webhooks"
    verbose_name = pgettext_lazy("timeline", "Webhooks")
    default_auto_field = "django.db.models.BigAutoField"
    api_routes = "timeline.webhooks.api.urls.routes"
    gauges = "timeline.webhooks.gauges.GAUGES"
    asks = "timeline.webhooks.upkeep.asks"
    beside = "timeline.webhooks.links.beside"

    def ready(self) -> None:
        """Connect it; runs when all models are there."""
        from django.core import checks
        from django.db.models.signals import post_delete, post_save

        from timeline.signals import diagnosing, entity_erased, pruning, relabelled, runs_entered, tasks_ending
        from timeline.webhooks import checks as webhooks_checks
        from timeline.webhooks import receivers
        from timeline.webhooks.models import Endpoint

        checks.register(webhooks_checks.check_settings)
        checks.register(webhooks_checks.check_topics_told, checks.Tags.database)
        runs_entered.connect(receivers.on_entered, dispatch_uid="timeline.webhooks.entered")
        tasks_ending.connect(receivers.on_ending, dispatch_uid="timeline.webhooks.ending")
        entity_erased.connect(receivers.on_erased, dispatch_uid="timeline.webhooks.erased")
        relabelled.connect(receivers.on_relabelled, dispatch_uid="timeline.webhooks.relabelled")
        pruning.connect(receivers.on_pruning, dispatch_uid="timeline.webhooks.upkeep")
        diagnosing.connect(receivers.on_diagnosing, dispatch_uid="timeline.webhooks.diagnosing")
        for signal in (post_save, post_delete):
            signal.connect(receivers.on_endpoint, sender=Endpoint, dispatch_uid="timeline.webhooks.endpoint")
