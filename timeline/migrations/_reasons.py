"""The way back past a reason code that was added: an older database refuses tasks that ended with it."""

from __future__ import annotations

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import RunPython
from django.db.migrations.state import StateApps

TABLE = "timeline_scheduledtask"


def known_before_as(older: str, *, code: str) -> RunPython:
    """
    Make the step between removing the old CHECK and adding the new one. It does nothing forwards.

    Backwards it gives tasks the reason code that the older database knows. What has ended is kept as it is by a trigger,
    which each ``migrate`` puts again. The log keeps what it said.
    """

    def rename(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        on_table = f" ON {TABLE}" if schema_editor.connection.vendor == "postgresql" else ""
        schema_editor.execute(f"DROP TRIGGER IF EXISTS timeline_guard_final{on_table}")
        update = f"UPDATE {TABLE} SET reason_code = %s WHERE reason_code = %s"  # noqa: S608 (a constant)
        schema_editor.execute(update, [older, code])

    return RunPython(RunPython.noop, rename)
