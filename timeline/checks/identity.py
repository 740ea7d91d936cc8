"""Checks of whose a database is, and whether anybody polls it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning

from timeline.checks._tables import are_made
from timeline.conf import get_settings
from timeline.exceptions import NoAutocommit, WrongSite
from timeline.models import BulkAction, Hold, Identity
from timeline.operations.identifying import confirm_site

SILENCE: Final = timedelta(minutes=5)  # At least; or ten poll intervals.


def check_identity(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """
    Look at the identity of each database.

    ``timeline.W007``: nobody has polled it for a while, where ``DEBUG`` is off. ``timeline.W008``: it is another site's.
    """
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
