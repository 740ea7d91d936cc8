"""System checks of this app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

from timeline.webhooks.conf import get_settings
from timeline.webhooks.secrets import REMEDY, check_keys


def check_settings(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:  # noqa: ARG001
    """
    ``timeline_webhooks.E001``: TIMELINE_WEBHOOKS holds an unknown name or a wrong value, or there are no keys.
    ``timeline_webhooks.W001``: receivers on this machine are allowed.
    """
    try:
        given = get_settings()
        check_keys()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint=REMEDY, id="timeline_webhooks.E001")]
    if given.ALLOW_LOOPBACK and not _is_small_site():
        hint = "Leave TIMELINE_WEBHOOKS['ALLOW_LOOPBACK'] out, but in a demo and in tests."
        return [Warning("Webhooks may call this machine itself, over http.", hint=hint, id="timeline_webhooks.W001")]
    return []


def _is_small_site() -> bool:
    return bool(settings.DEBUG)
