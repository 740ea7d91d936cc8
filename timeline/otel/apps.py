"""The app as Django sees it: what it looks on with is found by ``hooks``."""

from __future__ import annotations

from importlib.util import find_spec

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured


class OpenTelemetryConfig(AppConfig):
    """``timeline.otel``, beside ``timeline`` in ``INSTALLED_APPS``."""

    name = "timeline.otel"
    label = "timeline_otel"
    verbose_name = "OpenTelemetry"
    default_auto_field = "django.db.models.BigAutoField"

    @property
    def hooks(self) -> str:
        """Where it takes part; asked at start. Says what is missing."""
        if find_spec("opentelemetry") is None:
            raise ImproperlyConfigured(
                "timeline.otel is in INSTALLED_APPS, and opentelemetry-api is not there. Install the extra otel."
            )
        return "timeline.otel.hooks.HOOKS"

    def ready(self) -> None:
        """Let its settings be checked."""
        from django.core import checks

        from timeline.otel.conf import check_settings

        checks.register(check_settings)
