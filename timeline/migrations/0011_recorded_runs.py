"""
Let runs say when they were recorded: an exit ends the runs that were recorded before it, whenever it happened.

This and what follows change one table each, in a transaction each. Who writes meanwhile holds some of our tables and wants others,
so that a migration that waits for a second one while it holds a first would end in a deadlock.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0010_causes_of_ad_hoc_rows"),
    ]

    operations = [
        migrations.AddField(
            model_name="timelinerun",
            name="recorded_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
