"""By how much a bulk action moves each task, from its own time."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0059_one_brake"),
    ]

    operations = [
        migrations.AddField(
            model_name="bulkaction",
            name="by_days",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="bulkaction",
            name="by_seconds",
            field=models.IntegerField(db_default=0, default=0),
        ),
    ]
