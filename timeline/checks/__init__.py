"""System checks: what is wrong with the host's settings or database, with the remedy. One file for each thing looked at."""

from __future__ import annotations

from itertools import chain

from django.core import checks
from django.core.checks import Tags

from timeline.checks.database import (
    check_autocommit,
    check_isolation,
    check_journal,
    check_server_isolation,
    check_sqlite,
    check_tenants,
    check_triggers,
)
from timeline.checks.declared import check_modules, check_once, check_permissions, check_rows, check_starts
from timeline.checks.site import check_broker, check_identity, check_settings, check_site
from timeline.hooks import of_features

__all__ = [
    "check_autocommit",
    "check_broker",
    "check_identity",
    "check_isolation",
    "check_journal",
    "check_modules",
    "check_once",
    "check_permissions",
    "check_rows",
    "check_server_isolation",
    "check_settings",
    "check_site",
    "check_sqlite",
    "check_starts",
    "check_tenants",
    "check_triggers",
    "register",
]


def register() -> None:
    """Let ``manage.py check`` run these; those of a database with ``--database`` only."""
    for check in (
        check_settings,
        check_sqlite,
        check_autocommit,
        check_isolation,
        check_broker,
        check_permissions,
        check_modules,
        check_starts,
    ):
        checks.register(check)
    for check in (
        check_triggers,
        *chain.from_iterable(of_features("checks", "CHECKS")),
        check_rows,
        check_once,
        check_identity,
        check_journal,
        check_server_isolation,
        check_tenants,
    ):
        checks.register(check, Tags.database)
    checks.register(check_site, deploy=True)
