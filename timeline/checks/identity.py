"""Checks of whose a database is, and whether anybody polls it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning
from django.db import connections

from timeline.conf import get_settings
from timeline.exceptions import WrongSite
from timeline.models import Identity
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
    for alias in _with_identity(databases or ()):
        try:
            confirm_site(using=alias)
        except WrongSite as error:
            hint = "manage.py timeline_adopt says what there is to choose."
            found.append(Warning(str(error), hint=hint, id="timeline.W008"))
            continue
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


def _with_identity(aliases: Iterable[str]) -> Iterable[str]:
    table = Identity._meta.db_table
    return (alias for alias in aliases if table in connections[alias].introspection.table_names())
