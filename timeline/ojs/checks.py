"""System checks of this app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from timeline.conf import called_otherwise
from timeline.ojs.conf import Settings, get_settings


def check_settings(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:  # noqa: ARG001
    """
    ``timeline_ojs.E001``: TIMELINE_OJS holds an unknown name or a wrong value, or is misspelt. ``timeline_ojs.W001``: everybody
    may do everything.
    """
    for name in called_otherwise("TIMELINE_OJS", [field.name for field in fields(Settings)]):
        said = f"{name} in the settings is read by nobody. Did you mean 'TIMELINE_OJS'?"
        return [Error(said, hint="Rename it to TIMELINE_OJS.", id="timeline_ojs.E001")]
    try:
        given = get_settings()
        if given.AUTHENTICATE is not None:
            import_string(given.AUTHENTICATE)
    except (ImproperlyConfigured, ImportError) as error:
        return [Error(str(error), hint="See docs/how-to/ojs.md for what it takes.", id="timeline_ojs.E001")]
    if given.ANYBODY and not settings.DEBUG:
        said = "Everybody who reaches /ojs/ may enqueue jobs, take them and cancel them."
        hint = "Leave TIMELINE_OJS['ANYBODY'] out, but in tests."
        return [Warning(said, hint=hint, id="timeline_ojs.W001")]
    return []
