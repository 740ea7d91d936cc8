"""
Index causes of ad hoc rows only.

The rows of a run were caused by what started it, so they are found through the run; an entry for each, at each of its steps,
was a tenth of what they cost to write.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0009_names_without_keys"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="scheduledtask",
            name="timeline_task_caused",
        ),
        migrations.AddIndex(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("cause__isnull", False), ("run__isnull", True)),
                fields=["cause"],
                name="timeline_task_caused",
            ),
        ),
    ]
