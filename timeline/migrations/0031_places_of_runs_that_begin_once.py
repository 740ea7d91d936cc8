"""While an index is made, rows are read and not written."""

from django.db import migrations, models

from timeline.migrations._constraints import AddUniqueIndex


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0030_runs_that_begin_once"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="timelinerun",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", False), ("pruned", False)),
                fields=["ended_at", "id"],
                name="timeline_run_prunable",
            ),
        ),
        AddUniqueIndex(
            model_name="timelinerun",
            constraint=models.UniqueConstraint(
                condition=models.Q(("once", True)),
                fields=("entity_label", "entity_id", "timeline", "key"),
                name="timeline_run_one_ever",
            ),
        ),
    ]
