"""Tasks with a tag can be on hold. Both conditions are of the table of holds, which is small."""

from typing import Any

from django.db import migrations, models
from django.db.models import Q

SCOPES = ["entity", "task", "timeline", "queue", "tag", "everything"]
BY_NAME = ["queue", "tag", "task", "timeline"]


def forget(apps: Any, schema_editor: Any) -> None:
    """Going back, delete holds that an older version does not know: they hold nothing there."""
    apps.get_model("timeline", "Hold").objects.using(schema_editor.connection.alias).filter(scope="tag").delete()


class Migration(migrations.Migration):
    dependencies = [("timeline", "0002_count_handlers_entered_again")]

    operations = [
        migrations.RemoveConstraint("hold", "timeline_hold_scope_known"),
        migrations.RemoveConstraint("hold", "timeline_hold_names_what"),
        migrations.AlterField(
            "hold", "scope", models.CharField(choices=[(scope, scope) for scope in SCOPES], max_length=10)
        ),
        migrations.AddConstraint(
            "hold", models.CheckConstraint(condition=Q(scope__in=sorted(SCOPES)), name="timeline_hold_scope_known")
        ),
        migrations.AddConstraint(
            "hold",
            models.CheckConstraint(
                condition=Q(scope="entity", target="") & ~Q(entity_label="") & ~Q(entity_id="")
                | Q(scope="everything", target="", entity_label="", entity_id="")
                | Q(scope__in=BY_NAME, entity_label="", entity_id="") & ~Q(target=""),
                name="timeline_hold_names_what",
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, forget),
    ]
