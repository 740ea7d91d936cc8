"""Of several who put a kind on hold because of its brake, one makes the hold."""

from django.db import migrations, models

from timeline.migrations._constraints import AddUniqueIndex


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0058_brake_rows"),
    ]

    operations = [
        AddUniqueIndex(
            model_name="hold",
            constraint=models.UniqueConstraint(
                condition=models.Q(("park_above__isnull", False), ("released_at__isnull", True)),
                fields=("target",),
                name="timeline_hold_one_brake",
            ),
        ),
    ]
