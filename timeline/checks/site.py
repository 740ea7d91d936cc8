"""Checks of the settings, the site of each database, and the broker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

from timeline.checks.database import are_made
from timeline.conf import Settings, called_otherwise, get_settings
from timeline.exceptions import NoAutocommit, WrongSite
from timeline.models import BulkAction, Hold, Identity
from timeline.store.site import confirm_site

SILENCE: Final = timedelta(minutes=5)  # At least; or ten poll intervals.
PICKLE: Final = frozenset({"pickle", "application/x-python-serialize"})


def check_settings(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.E001``: TIMELINE holds an unknown name or a wrong value, or is misspelt. ``timeline.E002``: USE_TZ is off."""
    found: list[CheckMessage] = []
    try:
        get_settings()
    except ImproperlyConfigured as error:
        found.append(Error(str(error), hint="Correct TIMELINE in the settings.", id="timeline.E001"))
    for name in called_otherwise("TIMELINE", [field.name for field in fields(Settings)]):
        said = f"{name} in the settings is read by nobody. Did you mean 'TIMELINE'?"
        found.append(Error(said, hint="Rename it to TIMELINE.", id="timeline.E001"))
    if not settings.USE_TZ:
        found.append(Error("USE_TZ is off.", hint="Set USE_TZ = True: every time is aware.", id="timeline.E002"))
    return found


def check_identity(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.W007``: nobody has polled it for a while, without ``DEBUG``. ``timeline.W008``: it is another site's."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        if not are_made(alias, Identity, Hold, BulkAction):
            continue
        try:
            confirm_site(using=alias)
        except WrongSite as error:
            hint = "manage.py timeline_adopt says what there is to choose."
            found.append(Warning(str(error), hint=hint, id="timeline.W008"))
            continue
        except NoAutocommit:
            continue  # ``timeline.E005`` says so.
        silence = max(SILENCE, 10 * get_settings().POLL_INTERVAL)
        if not settings.DEBUG and Identity.objects.using(alias).unpolled(silence).there(silence).exists():
            message = f"Nobody has polled the database {alias!r} for {silence}: nothing that is due there runs."
            hint = "Start manage.py timeline_worker; or, with Celery, beat and a worker for polls, or timeline_poll."
            found.append(Warning(message, hint=hint, id="timeline.W007"))
    return found


def check_site(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.W009``, with ``check --deploy``: a copy of the database would run elsewhere."""
    if get_settings().SITE:
        return []
    hint = 'Set TIMELINE = {"SITE": "production", …}, and run manage.py timeline_adopt --keep.'
    message = "TIMELINE['SITE'] is not set: a copy of the database, restored elsewhere, would run what is due in it."
    return [Warning(message, hint=hint, id="timeline.W009")]


def check_broker(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.W004``: workers unpickle messages, so who can write to the broker can run code in them."""
    celery = sys.modules.get("celery")  # Who has not imported it by now does not use it.
    accepted = celery.current_app.conf.accept_content if celery is not None else None
    if PICKLE.isdisjoint([accepted] if isinstance(accepted, str) else accepted or ()):
        return []
    return [
        Warning(
            "Celery accepts pickled messages: who can write to the broker can run code in its workers.",
            hint='Set accept_content = ["json"]. Messages of timelines are plain ids.',
            id="timeline.W004",
        )
    ]
