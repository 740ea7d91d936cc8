"""Index runs that ended, in order of when: prune read all of them for that."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0014_ad_hoc_tasks_that_ended_first"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="timelinerun",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", False)),
                fields=["ended_at", "id"],
                name="timeline_run_ended",
            ),
        ),
    ]
