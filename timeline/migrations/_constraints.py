"""
Constraints on tables that are in use: PostgreSQL locks out all who read while it looks at each row for a new one.

So it is added for rows to come, in a moment, and those that are there are looked at by a later migration, which locks out nobody.
SQLite makes the table anew either way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AddConstraint
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import CheckConstraint


def _for_rows_to_come(constraint: Any, model: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute(f"{constraint.create_sql(model, schema_editor)} NOT VALID", params=None)


def _for_all_rows(constraint: Any, model: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.add_constraint(model, constraint)


class AddConstraintForRowsToCome(AddConstraint):
    """Adds a constraint that is not asked of the rows that are there; ``LookAtRows`` follows in another migration."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Add it."""
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            _for_rows_to_come(self.constraint, model, schema_editor)


class ReplaceConstraintsForRowsToCome(Operation):
    """Puts constraints in the place of those that have the same names; ``LookAtRows`` follows in another migration."""

    def __init__(self, model_name: str, constraints: Sequence[CheckConstraint]) -> None:
        self.model_name = model_name
        self.constraints = constraints

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Replace them."""
        for constraint in self.constraints:
            state.remove_constraint(app_label, self.model_name.lower(), constraint.name)
            state.add_constraint(app_label, self.model_name.lower(), constraint)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002 (Django's signature)
        to_state: ProjectState,
    ) -> None:
        """Replace them."""
        self._replace(to_state.apps.get_model(app_label, self.model_name), schema_editor, _for_rows_to_come)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002 (Django's signature)
        to_state: ProjectState,
    ) -> None:
        """Put those back that were there before."""
        self._replace(to_state.apps.get_model(app_label, self.model_name), schema_editor, _for_all_rows)

    def _replace(
        self, model: Any, schema_editor: BaseDatabaseSchemaEditor, add: Callable[[Any, Any, Any], object]
    ) -> None:
        """Those that are there by those of the same names that the model has."""
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        names = {constraint.name for constraint in self.constraints}
        wanted = [constraint for constraint in model._meta.constraints if constraint.name in names]
        if schema_editor.connection.vendor != "postgresql":
            schema_editor.add_constraint(model, wanted[0])  # Makes the table anew, with all constraints of the model.
            return
        for constraint in wanted:
            schema_editor.remove_constraint(model, constraint)
            add(constraint, model, schema_editor)

    def describe(self) -> str:
        """Say it, as ``migrate --plan`` shows it."""
        return f"Replace constraints of {self.model_name}: {', '.join(known.name for known in self.constraints)}"


class AddUniqueIndex(AddConstraint):
    """Adds a UNIQUE of some rows, which PostgreSQL has as an index: while it is made, rows are read and not written."""


class AddUniqueIndexBesideWrites(AddConstraint):
    """Adds a UNIQUE of some rows and holds up nobody who writes. Its migration has ``atomic = False``."""

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
            schema_editor.execute(f"DROP INDEX IF EXISTS {schema_editor.quote_name(self.constraint.name)}")
            made = str(self.constraint.create_sql(model, schema_editor))
            schema_editor.execute(made.replace("UNIQUE INDEX", "UNIQUE INDEX CONCURRENTLY", 1), params=None)


class LookAtRows(Operation):
    """Sees that the rows that are there keep constraints that were added for those to come."""

    def __init__(self, model_name: str, *names: str) -> None:
        self.model_name = model_name
        self.names = names

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Leave models as they are."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002 (Django's signature)
        to_state: ProjectState,
    ) -> None:
        """Look at them; nothing is done if that was done before."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if self._is_asked(model, schema_editor):
            table, *names = map(schema_editor.quote_name, (model._meta.db_table, *self.names))
            asked = ", ".join(f"VALIDATE CONSTRAINT {name}" for name in names)  # In one look.
            schema_editor.execute(f"ALTER TABLE {table} {asked}")

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,  # noqa: ARG002 (Django's signature)
        to_state: ProjectState,
    ) -> None:
        """Leave the constraints for rows to come."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if self._is_asked(model, schema_editor):
            for constraint in [known for known in model._meta.constraints if known.name in self.names]:
                schema_editor.remove_constraint(model, constraint)
                _for_rows_to_come(constraint, model, schema_editor)

    def _is_asked(self, model: Any, schema_editor: BaseDatabaseSchemaEditor) -> bool:
        connection = schema_editor.connection
        return connection.vendor == "postgresql" and self.allow_migrate_model(connection.alias, model)

    def describe(self) -> str:
        """Say it, as ``migrate --plan`` shows it."""
        return f"See that all rows of {self.model_name} keep {', '.join(self.names)}"
