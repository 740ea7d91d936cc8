"""
Let workers say that they are there, and tasks when they were sent, and on which day the date is that they count from.

A date is the same date in every time zone, while its midnight is not.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0011_recorded_runs"),
    ]

    operations = [
        migrations.CreateModel(
            name="Sign",
            fields=[
                ("worker", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("seen_at", models.DateTimeField()),
                ("missed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "timeline_worker",
            },
        ),
        migrations.AddField(
            model_name="scheduledtask",
            name="sent_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="scheduledtask",
            name="anchor_date",
            field=models.DateField(blank=True, null=True),
        ),
    ]
