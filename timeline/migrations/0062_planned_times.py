"""When the plan of a row had it due. Of rows that are there nobody knows, and they stay as they are."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0061_indexes_of_counts"),
    ]

    operations = [
        migrations.AddField(
            model_name="scheduledtask",
            name="planned_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
