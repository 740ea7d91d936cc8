"""The setting ``TIMELINE_OTEL``: a dict whose names, types and defaults are the fields of ``Settings``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from timeline.conf import check_kind, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    What a host may set in ``TIMELINE_OTEL``.

    Args:
        KEEP: How long ``timeline.maintain`` keeps what leads to a trace: as long as your backend keeps traces.
        LINK_AFTER: After a wait longer than this, an attempt begins a trace of its own, with a link to the one that caused it.
    """

    KEEP: timedelta = timedelta(days=90)
    LINK_AFTER: timedelta = timedelta(minutes=5)


def get_settings() -> Settings:
    """Read ``TIMELINE_OTEL`` as it is now; ``ImproperlyConfigured`` for an unknown name or a wrong kind."""
    given: dict[str, Any] = getattr(settings, "TIMELINE_OTEL", {})
    if not isinstance(given, dict):
        raise ImproperlyConfigured(f"TIMELINE_OTEL is {given!r:.60}. Make it a dict.")
    for name, value in given.items():
        check_kind("TIMELINE_OTEL", Settings, name, value)
        check_positive("TIMELINE_OTEL", name, value)
    return Settings(**given)


def check_settings(**_options: Any) -> list[checks.CheckMessage]:
    """Say at start what is wrong with the setting."""
    try:
        get_settings()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="timeline_otel.E001")]
    return []
