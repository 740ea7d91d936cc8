"""Checks of databases: autocommit, isolation, SQLite, tenants and triggers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import DEFAULT_DB_ALIAS, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Model

from timeline.dialects import dialect_of, known_among
from timeline.models import model_of
from timeline.reading.diagnosis import databases
from timeline.registry import registry
from timeline.store.missing_entities import hides_rows
from timeline.store.transactions import FRESH, host_level, server_level
from timeline.store.triggers import missing_triggers


def check_autocommit(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.E005``: workers would enter handlers and lose their outcomes. Of databases that routers give our tables to."""
    ours = databases() if router.routers else [DEFAULT_DB_ALIAS]
    return [
        Error(
            f"The database {alias!r} has AUTOCOMMIT off: handlers would be entered, and their outcomes lost.",
            hint=f"Take AUTOCOMMIT out of DATABASES[{alias!r}], and open transactions with transaction.atomic().",
            id="timeline.E005",
        )
        for alias in ours
        if not connections[alias].settings_dict["AUTOCOMMIT"]
    ]


def check_isolation(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.W010``: the host's transactions, by the settings, are such that verbs refuse to be called in them."""
    ours = databases() if router.routers else [DEFAULT_DB_ALIAS]
    levels = {alias: host_level(alias) for alias in ours}
    return [_warning(alias, level, "OPTIONS['isolation_level']") for alias, level in levels.items() if level]


def check_server_isolation(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.W010``, where it is the server, the database or the role that has them so."""
    asked = [alias for alias, dialect in known_among(databases or ()) if not dialect.has_one_writer]
    levels = {alias: server_level(alias) for alias in asked}
    where = "default_transaction_isolation"
    return [_warning(alias, level, where) for alias, level in levels.items() if level not in FRESH]


def _warning(alias: str, level: str, where: str) -> CheckMessage:
    return Warning(
        f"Transactions of the database {alias!r} are {level.upper()} by {where}: emit, start, cancel and the like refuse to be "
        "called in them.",
        hint="Let them be READ COMMITTED; or call these outside of transactions, where they have one of their own.",
        id="timeline.W010",
    )


def check_sqlite(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.E003``: SQLite too old. ``W001``: transactions begin by reading. ``W002``: SQLite while ``DEBUG`` is off."""
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


def check_tenants(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.W014``: row-level security hides rows of a timeline's model from this role."""
    models = {model for label in {known.label for known in registry} if label and (model := model_of(label))}
    return [
        Warning(
            f"Row-level security hides rows of {model._meta.label} from this role in the database {alias!r}: tasks of entities "
            "that it cannot see rest.",
            hint="Give the role of workers and pollers BYPASSRLS, and set the tenant in the handlers.",
            id="timeline.W014",
        )
        for alias, _dialect in known_among(databases or ())
        for model in sorted(models, key=lambda known: known._meta.label)
        if router.allow_migrate_model(alias, model)
        and model._meta.db_table in connections[alias].introspection.table_names()
        and hides_rows(model, using=alias)
    ]


def check_triggers(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.E004``: a trigger or function is missing. Silent while ``migrate``, which puts it, has something to do."""
    return [
        Error(
            f"The trigger or function {name} is missing in the database {alias!r}.",
            hint=f"Run manage.py migrate --database {alias} --skip-checks, which puts it back.",
            id="timeline.E004",
        )
        for alias in databases or ()
        if (missing := missing_triggers(alias)) and not _is_to_be_migrated(alias)
        for name in missing
    ]


def _is_to_be_migrated(using: str) -> bool:
    """Whether a migration of ours has not been applied."""
    executor = MigrationExecutor(connections[using])
    ours = [node for node in executor.loader.graph.leaf_nodes() if node[0] == "timeline"]
    return bool(executor.migration_plan(ours))


def are_made(alias: str, *models: type[Model]) -> bool:
    """Whether a database has the tables of some models, with all their columns."""
    connection = connections[alias]
    introspection = connection.introspection
    with connection.cursor() as cursor:
        tables = introspection.table_names(cursor)
        for meta in (model._meta for model in models):
            if meta.db_table not in tables:
                return False
            there = {column.name for column in introspection.get_table_description(cursor, meta.db_table)}
            if not there.issuperset(field.column for field in meta.local_concrete_fields):
                return False
    return True
