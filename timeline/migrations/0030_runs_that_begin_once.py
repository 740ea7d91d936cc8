"""
Runs that begin once only, and rows of runs that are kept for their keys.

``prune`` looks at all rows until 0031 has made its new index: that costs it some time, and nobody else.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0029_reasons_with_run_ended"),
    ]

    operations = [
        migrations.AddField(
            model_name="timelinerun",
            name="once",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name="timelinerun",
            name="pruned",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.RemoveIndex(model_name="timelinerun", name="timeline_run_ended"),
    ]
