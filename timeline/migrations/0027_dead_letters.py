from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0026_fingerprints"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(("state", "discarded")),
                fields=["fingerprint", "finished_at", "id"],
                name="timeline_task_dead",
            ),
        ),
    ]
