"""System checks: what is wrong with the host's settings or database, with the remedy. One file for each thing looked at."""

from __future__ import annotations

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
from timeline.features.limits.checks import check_limits  # of limits
from timeline.features.machines.checks import check_edges

__all__ = [
    "check_autocommit",
    "check_broker",
    "check_edges",
    "check_identity",
    "check_isolation",
    "check_journal",
    "check_limits",  # of limits
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
        check_edges,
        check_rows,
        check_limits,  # of limits
        check_once,
        check_identity,
        check_journal,
        check_server_isolation,
        check_tenants,
    ):
        checks.register(check, Tags.database)
    checks.register(check_site, deploy=True)
