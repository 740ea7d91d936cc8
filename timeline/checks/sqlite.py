"""Checks of databases on SQLite, which has one writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from timeline.dialects import dialect_of, known_among


def check_sqlite(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """
    Look at the settings of databases.

    ``timeline.E003``: SQLite is too old. ``timeline.W001``: transactions begin by reading. ``timeline.W002``: a site that is
    not being developed is on SQLite.
    """
    found: list[CheckMessage] = []
    on_sqlite = list(_on_sqlite(connections))
    if on_sqlite and (version := sqlite3.sqlite_version_info) < (3, 35):
        said = ".".join(map(str, version))
        found.append(Error(f"SQLite is {said}.", hint="Use SQLite 3.35 or later.", id="timeline.E003"))
    for connection in on_sqlite:
        options = connection.settings_dict.get("OPTIONS", {})
        if str(options.get("transaction_mode", "")).upper() not in {"IMMEDIATE", "EXCLUSIVE"}:
            hint = 'Set OPTIONS = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL"}.'
            message = f"Transactions of the SQLite database {connection.alias!r} may fail with 'database is locked'."
            found.append(Warning(message, hint=hint, id="timeline.W001"))
        if not settings.DEBUG and not _in_memory(connection):
            hint = 'Use PostgreSQL. For a small site: SILENCED_SYSTEM_CHECKS = ["timeline.W002"].'
            message = (
                f"DEBUG is off, and the database {connection.alias!r} is SQLite: one writer at a time, one worker."
            )
            found.append(Warning(message, hint=hint, id="timeline.W002"))
    return found


def check_journal(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.W003``: on SQLite without a write-ahead log, readers and the writer wait for each other."""
    return [
        Warning(
            f"The SQLite database {connection.alias!r} keeps its journal as {mode!r}: who reads waits for who writes.",
            hint='Add "init_command": "PRAGMA journal_mode=WAL" to its OPTIONS.',
            id="timeline.W003",
        )
        for connection in _on_sqlite(databases or ())
        if not _in_memory(connection) and (mode := _journal_mode(connection)) != "wal"
    ]


def _on_sqlite(aliases: Iterable[str]) -> Iterator[BaseDatabaseWrapper]:
    return (connections[alias] for alias, dialect in known_among(aliases) if dialect.has_one_writer)


def _in_memory(connection: BaseDatabaseWrapper) -> bool:
    name = str(connection.settings_dict["NAME"])
    return name == ":memory:" or "mode=memory" in name


def _journal_mode(connection: BaseDatabaseWrapper) -> str:
    with connection.cursor() as cursor:
        cursor.execute(dialect_of(connection.alias).sql("journal_mode"))
        [mode] = cursor.fetchone()
    return str(mode).lower()
