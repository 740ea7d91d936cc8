"""Indexes on tables that are in use: PostgreSQL builds them while others write, which it does outside of transactions only."""

from __future__ import annotations

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AddIndex, RemoveIndex
from django.db.migrations.state import ProjectState


class AddIndexBesideWrites(AddIndex):
    """Adds an index and holds up nobody who writes. Its migration has ``atomic = False``."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Add it; one that was begun and not finished is made anew."""
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            schema_editor.execute(f"DROP INDEX IF EXISTS {schema_editor.quote_name(self.index.name)}")
            schema_editor.execute(self.index.create_sql(model, schema_editor, concurrently=True), params=None)


class RemoveIndexBesideWrites(RemoveIndex):
    """Removes an index and holds up nobody. Its migration has ``atomic = False``."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Remove it, if it is there."""
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = from_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(self.name)}")
