"""Checks of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured

from timeline.conf import get_settings


def check_settings(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.E001``: TIMELINE holds an unknown name or a wrong value. ``timeline.E002``: USE_TZ is off."""
    found: list[CheckMessage] = []
    try:
        get_settings()
    except ImproperlyConfigured as error:
        found.append(Error(str(error), hint="Correct TIMELINE in the settings.", id="timeline.E001"))
    if not settings.USE_TZ:
        found.append(Error("USE_TZ is off.", hint="Set USE_TZ = True: every time is aware.", id="timeline.E002"))
    return found
