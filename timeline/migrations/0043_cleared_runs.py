"""Runs that earlier ones of their timeline have let pass."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0042_reasons_with_hold"),
    ]

    operations = [
        migrations.AddField(
            model_name="timelinerun",
            name="is_cleared",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
    ]
