"""System checks: what is wrong with the host's settings or database, with the remedy. One file for each thing looked at."""

from __future__ import annotations

from django.core import checks
from django.core.checks import Tags

from timeline.checks.autocommit import check_autocommit
from timeline.checks.broker import check_broker
from timeline.checks.edges import check_edges
from timeline.checks.identity import check_identity, check_site
from timeline.checks.isolation import check_isolation, check_server_isolation
from timeline.checks.limits import check_limits
from timeline.checks.once import check_once
from timeline.checks.rows import check_rows
from timeline.checks.settings import check_settings
from timeline.checks.sqlite import check_journal, check_sqlite
from timeline.checks.triggers import check_triggers

__all__ = [
    "check_autocommit",
    "check_broker",
    "check_edges",
    "check_identity",
    "check_isolation",
    "check_journal",
    "check_limits",
    "check_once",
    "check_rows",
    "check_server_isolation",
    "check_settings",
    "check_site",
    "check_sqlite",
    "check_triggers",
    "register",
]


def register() -> None:
    """Let ``manage.py check`` run these; those of a database with ``--database`` only."""
    for check in (check_settings, check_sqlite, check_autocommit, check_isolation, check_broker):
        checks.register(check)
    for check in (
        check_triggers,
        check_edges,
        check_rows,
        check_limits,
        check_once,
        check_identity,
        check_journal,
        check_server_isolation,
    ):
        checks.register(check, Tags.database)
    checks.register(check_site, deploy=True)
