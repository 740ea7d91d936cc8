"""Everything that a database has beside rows, as lines of text that can be compared."""

from __future__ import annotations

from typing import Final

from django.db import connection

SQLITE: Final = "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_master ORDER BY 1"
POSTGRESQL: Final = """
    SELECT 'column ' || table_name || '.' || column_name || ': ' || data_type || ' ' || is_nullable || ' '
        || coalesce(column_default, '') FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT 'relation ' || relname || ' ' || relkind::text || ' ' || coalesce(array_to_string(reloptions, ','), '')
        FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ': ' || pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'trigger ' || pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function ' || oid::regprocedure FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'type ' || typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
    UNION ALL SELECT 'extension ' || extname FROM pg_extension
    UNION ALL SELECT 'setting ' || setdatabase || ' ' || setrole || ' ' || array_to_string(setconfig, ',')
        FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY 1
"""


def schema() -> list[str]:
    """Tables, columns, indexes, constraints, triggers, functions, types, extensions and settings."""
    with connection.cursor() as cursor:
        cursor.execute(SQLITE if connection.vendor == "sqlite" else POSTGRESQL)
        return [line for (line,) in cursor.fetchall()]
