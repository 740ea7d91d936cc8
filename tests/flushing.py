"""
Empty the tables after a test that commits, quickly; and let go of what tests leave behind that roll back.

Django's ``flush`` makes each of 45 tables anew, however little was in it, and then all content types and permissions. On
PostgreSQL that takes up to half a second a test. Here rows are deleted where they are few; content types and permissions stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.color import no_style
from django.core.management.commands.flush import Command
from django.db import Error, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from timeline.receivers import on_migrate

KEPT: Final = {ContentType._meta.db_table, Permission._meta.db_table}
FEW: Final = 1_000_000  # Bytes of a table. A larger one is made anew: who plans queries looks at its size.
SIZE: Final = (
    "SELECT max(pg_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)
LARGE: Final = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    " AND pg_relation_size(oid) >= %s"
)


@contextmanager
def quick_flush() -> Iterator[None]:
    """Let ``flush`` be quick meanwhile, where it can be."""
    thorough = Command.handle

    def handle(self: Command, **options: Any) -> None:
        connection = connections[options["database"]]
        asked = options.get("allow_cascade"), options.get("inhibit_post_migrate")
        if any(asked) or not _can_be_quick(connection):
            thorough(self, **options)
            return
        tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - KEPT
        _delete(connection, sorted(tables))
        on_migrate(using=connection.alias)

    Command.handle = handle  # type: ignore[method-assign]
    try:
        yield
    finally:
        Command.handle = thorough  # type: ignore[method-assign]


def vacuum_large(connection: BaseDatabaseWrapper) -> None:
    """
    On PostgreSQL, take dead rows out of tables that are large. What is rolled back stays in a table's file, and whoever reads
    all of the table reads that, too: hundreds of tests, after one of 100,000 rows. Within a transaction it cannot be done.
    """
    if connection.vendor != "postgresql" or connection.connection is None or connection.in_atomic_block:
        return
    with connection.cursor() as cursor:
        cursor.execute(LARGE, [FEW])
        if large := [connection.ops.quote_name(table) for (table,) in cursor.fetchall()]:
            cursor.execute(f"VACUUM {', '.join(large)}")


def _can_be_quick(connection: BaseDatabaseWrapper) -> bool:
    """Whether what is kept is as migrations made it, and the tables are small."""
    models = apps.get_models()
    permissions = sum(len(model._meta.default_permissions) + len(model._meta.permissions) for model in models)
    using = connection.alias
    try:
        whole = (
            ContentType.objects.using(using).count() == len(models)
            and Permission.objects.using(using).count() == permissions
        )
    except Error:  # Its tables are not there.
        return False
    if not whole or connection.vendor != "postgresql":
        return whole
    with connection.cursor() as cursor:
        cursor.execute("SHOW is_superuser")
        if cursor.fetchone() != ("on",):  # Who is none cannot pass over the triggers.
            return False
        cursor.execute(SIZE)
        [[size]] = cursor.fetchall()
        return bool(size < FEW)


def _delete(connection: BaseDatabaseWrapper, tables: list[str]) -> None:
    if connection.vendor != "postgresql":
        connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), tables))
        return
    quote = connection.ops.quote_name
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL session_replication_role = replica"
        )  # Neither triggers nor the order of foreign keys.
        cursor.execute(";".join(f"DELETE FROM {quote(table)}" for table in tables))  # noqa: S608 (names of Django's)
