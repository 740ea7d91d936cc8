"""Migrations as databases took them that were made before there was one for all tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader


@contextmanager
def one_by_one() -> Iterator[None]:
    """Let ``migrate`` know no migration that replaces others, as in an earlier version."""
    load = MigrationLoader.load_disk

    def load_disk(loader: MigrationLoader) -> None:
        load(loader)
        loader.disk_migrations = {key: known for key, known in loader.disk_migrations.items() if not known.replaces}

    with patch.object(MigrationLoader, "load_disk", load_disk):
        yield


def names() -> list[str]:
    """Our migrations, in the order in which they are applied."""
    with one_by_one():
        graph = MigrationLoader(None).graph
    [leaf] = graph.leaf_nodes("timeline")
    return [name for app, name in graph.forwards_plan(leaf) if app == "timeline"]


def migrate(*target: str, using: str) -> None:
    """To a migration of ours, or to the last one, as somebody does on the command line."""
    call_command("migrate", "timeline", *target, database=using, verbosity=0, skip_checks=True)
