"""System checks of this app."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

from timeline.checks.database import are_made
from timeline.conf import called_otherwise
from timeline.suggestions import did_you_mean
from timeline.webhooks.conf import Settings, get_settings
from timeline.webhooks.facts import known_topics
from timeline.webhooks.models import Endpoint
from timeline.webhooks.secrets import REMEDY, check_keys


def check_settings(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:  # noqa: ARG001
    """
    ``timeline_webhooks.E001``: TIMELINE_WEBHOOKS holds an unknown name or a wrong value, is misspelt, or has no keys.
    ``timeline_webhooks.W001``: receivers on this machine are allowed.
    """
    for name in called_otherwise("TIMELINE_WEBHOOKS", [field.name for field in fields(Settings)]):
        said = f"{name} in the settings is read by nobody. Did you mean 'TIMELINE_WEBHOOKS'?"
        return [Error(said, hint="Rename it to TIMELINE_WEBHOOKS.", id="timeline_webhooks.E001")]
    try:
        given = get_settings()
        check_keys()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint=REMEDY, id="timeline_webhooks.E001")]
    if given.ALLOW_LOOPBACK and not _is_small_site():
        hint = "Leave TIMELINE_WEBHOOKS['ALLOW_LOOPBACK'] out, but in a demo and in tests."
        return [Warning("Webhooks may call this machine itself, over http.", hint=hint, id="timeline_webhooks.W001")]
    return []


def check_topics_told(
    app_configs: Sequence[AppConfig] | None,  # noqa: ARG001
    databases: Sequence[str] | None = None,
    **_extra: Any,
) -> list[CheckMessage]:
    """``timeline_webhooks.W002``: an endpoint wants a topic that nothing tells, such as a state that was renamed."""
    known = set(known_topics())
    return [
        Warning(
            f"The endpoint {endpoint} of the database {alias!r} wants {topic!a:.80}, which nothing tells.",
            hint=f"{did_you_mean(topic, known)} Change its topics, or tell it again: tells = (…).".strip(),
            id="timeline_webhooks.W002",
        )
        for alias in databases or ()
        if are_made(alias, Endpoint)
        for endpoint in Endpoint.objects.using(alias).filter(disabled_at=None).order_by("pk")
        for topic in endpoint.topics
        if topic not in known
    ]


def _is_small_site() -> bool:
    return bool(settings.DEBUG)
