"""Checks of isolation levels: verbs need to see what others have just committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning
from django.db import DEFAULT_DB_ALIAS, router

from timeline.dialects import known_among
from timeline.reading.diagnosing import databases
from timeline.store.isolating import FRESH, host_level, server_level


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
