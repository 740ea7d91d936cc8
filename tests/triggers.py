"""Takes guards off tables, or puts others there, to see what then happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.models import Model

from timeline.models import ScheduledTask
from timeline.store.triggers import triggers_of


def drop_trigger(name: str) -> None:
    """Take one of the guards off its table."""
    of_table = f" ON {triggers_of(connection.alias)[name]}" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER timeline_{name}{of_table}")


@contextmanager
def refusing(condition: str, *, of: type[Model] = ScheduledTask, at_commit: bool = False) -> Iterator[None]:
    """
    Let the database refuse what is written to tasks, or to others of our rows, within the block.

    Args:
        condition: Of SQL, on ``NEW``.
        of: Model whose rows it is.
        at_commit: Only when the transaction ends; PostgreSQL alone knows that.
    """
    table, on_postgresql = of._meta.db_table, connection.vendor == "postgresql"
    kind = "CONSTRAINT TRIGGER refuse AFTER" if at_commit else "TRIGGER refuse BEFORE"
    when = "DEFERRABLE INITIALLY DEFERRED" if at_commit else ""
    does = "EXECUTE FUNCTION refuse()" if on_postgresql else "BEGIN SELECT RAISE(ABORT, 'the trigger says no'); END"
    with connection.cursor() as cursor:
        if on_postgresql:
            cursor.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql "
                "AS 'BEGIN RAISE EXCEPTION ''the trigger says no''; END'"
            )
        cursor.execute(f"CREATE {kind} UPDATE ON {table} {when} FOR EACH ROW WHEN ({condition}) {does}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE" if on_postgresql else "DROP TRIGGER refuse")
