"""What there is in a database, apart from rows: compared before and after."""

from __future__ import annotations

from functools import cache
from typing import Final

from django.db import connections

# Each answers with rows of texts: kind, name, and what it is.
OF_POSTGRESQL: Final = (
    "SELECT 'schema', nspname, '' FROM pg_namespace WHERE nspname !~ '^pg_(toast|temp)'",
    "SELECT 'extension', extname, '' FROM pg_extension",
    """
    SELECT 'relation ' || relkind::text, relname, coalesce(reloptions::text, '')
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    """,
    """
    SELECT 'column', attrelid::regclass || '.' || attname,
        concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, attidentity, pg_get_expr(adbin, adrelid))
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
    """,
    "SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    """
    SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    """,
    "SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "SELECT 'event trigger', evtname, '' FROM pg_event_trigger",
    "SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "SELECT 'type ' || typtype::text, typname, '' FROM pg_type WHERE typnamespace = 'public'::regnamespace",
)
OF_SQLITE: Final = ("SELECT type, tbl_name || '.' || name, coalesce(sql, '') FROM sqlite_master",)


def schema_of(using: str) -> set[tuple[str, str, str]]:
    """List the tables, columns, indexes, constraints, sequences, triggers, functions and types of a database."""
    on_postgresql = connections[using].vendor == "postgresql"
    there: set[tuple[str, str, str]] = set()
    with connections[using].cursor() as cursor:
        for question in OF_POSTGRESQL if on_postgresql else OF_SQLITE:
            cursor.execute(question)
            there.update(cursor.fetchall())
    return there if on_postgresql else {entry for found in there for entry in _parts(*found)}


@cache
def _parts(kind: str, name: str, sql: str) -> list[tuple[str, str, str]]:
    """Take a table of SQLite apart into columns and constraints: a table that is made anew may have them in another order."""
    begin, opens, inside = sql.partition("(")
    if kind != "table" or not opens:
        return [(kind, name, sql)]
    depth, part, parts = 0, "", []
    for sign in inside.rpartition(")")[0]:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += sign
    return [(begin, name, part.strip()) for part in (*parts, part)]
