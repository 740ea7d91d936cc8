"""What is there at a moment, kept in tables beside the world's own, so that it can be put back many times."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Final

from django.db import connection, transaction

from tests.faults.seeing import TABLES

NAMES: Final = [model._meta.db_table for model in TABLES]  # What names others comes before them.
EMPTY: Final = [f"DELETE FROM {name}" for name in NAMES]  # noqa: S608 (our own words)


class Kept:
    """
    What the world's tables and journals hold now.

    Args:
        journals: Lists and sets of this process that belong to it.
    """

    def __init__(self, *journals: list | set) -> None:
        self._journals = [(journal, copy(journal)) for journal in journals]
        self._names = [model._meta.db_table for model in reversed(TABLES) if model._base_manager.exists()]
        at_once([f"CREATE TABLE kept_{name} AS SELECT * FROM {name}" for name in self._names])  # noqa: S608

    def put_back(self) -> None:
        """Let it be there again, with the same keys, and nothing else."""
        at_once([*EMPTY, *(f"INSERT INTO {name} SELECT * FROM kept_{name}" for name in self._names)])  # noqa: S608
        for journal, was in self._journals:
            journal.clear()
            (journal.extend if isinstance(journal, list) else journal.update)(was)

    def forget(self) -> None:
        """Keep it no longer."""
        at_once([f"DROP TABLE kept_{name}" for name in self._names])


def at_once(statements: Sequence[str]) -> None:
    """Execute statements in one transaction; on PostgreSQL in one trip."""
    if not statements:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(";".join(statements))
            return
        with transaction.atomic():
            for statement in statements:
                cursor.execute(statement)
