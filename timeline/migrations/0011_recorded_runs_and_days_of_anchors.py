"""
Let runs say when they were recorded, and tasks on which day the date is that they count from.

An exit ends the runs that were recorded before it, whenever it happened: so events are looked for by when they were recorded.
A date is the same date in every time zone, while its midnight is not.
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
        migrations.AddField(
            model_name="scheduledtask",
            name="anchor_date",
            field=models.DateField(blank=True, null=True),
        ),
        migrations.RemoveIndex(
            model_name="event",
            name="timeline_event_entity",
        ),
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                fields=["entity_label", "entity_id", "name", "recorded_at"], name="timeline_event_entity"
            ),
        ),
    ]
