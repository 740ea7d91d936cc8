"""
An index of what people decided, in the log, for the page of who did what.

An entry that a worker or a poll writes costs nothing, nor does one of an event that ends a run, whoever caused it. On PostgreSQL it is built while others write.
"""

from typing import Any

from django.db import migrations, models
from django.db.models import Q


class AddIndexBeside(migrations.AddIndex):
    """Build an index without keeping others from writing, where the database can."""

    atomic = False

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:  # noqa: ARG002 (Django's)
        """Build it, unless this table is kept elsewhere."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            beside = {"concurrently": True} if schema_editor.connection.vendor == "postgresql" else {}
            schema_editor.add_index(model, self.index, **beside)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("timeline", "0005_take_what_waits")]

    operations = [
        AddIndexBeside(
            "logentry",
            models.Index(
                fields=["at", "id", "actor"],
                condition=~Q(actor="") & ~Q(reason_code="exit"),
                name="timeline_log_people",
            ),
        ),
    ]
