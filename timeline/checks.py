"""System checks: what is wrong with the host's settings or database, with the remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Tags
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from timeline.conf import get_settings
from timeline.models.triggers import missing_triggers


def register() -> None:
    """Let ``manage.py check`` run these."""
    checks.register(check_settings)
    checks.register(check_sqlite)
    checks.register(check_triggers, Tags.database)


def check_settings(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.E001``: TIMELINE holds an unknown name or a wrong value. ``timeline.E002``: USE_TZ is off."""
    found: list[CheckMessage] = []
    try:
        get_settings()
    except ImproperlyConfigured as error:
        found.append(checks.Error(str(error), hint="Correct TIMELINE in the settings.", id="timeline.E001"))
    if not settings.USE_TZ:
        found.append(checks.Error("USE_TZ is off.", hint="Set USE_TZ = True: every time is aware.", id="timeline.E002"))
    return found


def check_sqlite(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.W001``: transactions on SQLite begin by reading. ``timeline.E003``: SQLite is too old."""
    found: list[CheckMessage] = []
    on_sqlite = [connections[alias] for alias in connections if connections[alias].vendor == "sqlite"]
    if on_sqlite and (version := sqlite3.sqlite_version_info) < (3, 35):
        said = ".".join(map(str, version))
        found.append(checks.Error(f"SQLite is {said}.", hint="Use SQLite 3.35 or later.", id="timeline.E003"))
    for connection in on_sqlite:
        options = connection.settings_dict.get("OPTIONS", {})
        if str(options.get("transaction_mode", "")).upper() not in {"IMMEDIATE", "EXCLUSIVE"}:
            hint = 'Set OPTIONS = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL"}.'
            message = f"Transactions of the SQLite database {connection.alias!r} may fail with 'database is locked'."
            found.append(checks.Warning(message, hint=hint, id="timeline.W001"))
    return found


def check_triggers(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.E004``: a trigger that guards the rows is missing."""
    return [
        checks.Error(
            f"The trigger {name} is missing in the database {alias!r}.",
            hint=f"Run manage.py migrate --database {alias}, which puts it back.",
            id="timeline.E004",
        )
        for alias in databases or ()
        for name in missing_triggers(alias)
    ]
