"""Migrate a database of a test's own, as somebody does on the command line."""

from __future__ import annotations

from typing import Final

from django.core.management import call_command

APPS: Final = ("timeline", "timeline_webhooks")
HOSTS: Final = (
    "accounts.user",
    "testapp.order",
    "testapp.trip",
)  # Tables of the site, which its own migrations are about.


def migrate_all(*, using: str) -> None:
    """To the last migrations of all apps: those that stand beside ours are undone with it."""
    call_command("migrate", database=using, verbosity=0, skip_checks=True)


def migrate(*target: str, using: str, app: str = "timeline") -> None:
    """To a migration of an app of ours, or to its last one."""
    call_command("migrate", app, *target, database=using, verbosity=0, skip_checks=True)
