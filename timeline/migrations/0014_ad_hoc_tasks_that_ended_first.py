"""
Index ad hoc tasks that ended, in order of when: prune, which mostly finds nothing, read all tasks for that.

An ad hoc task is found by its first revision.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0012_workers_and_sending"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", False), ("revision", 1), ("run__isnull", True)),
                fields=["finished_at"],
                name="timeline_adhoc_ended",
            ),
        ),
    ]
