"""Look whether the rows that are there keep what 0044 asks for: nobody waits while PostgreSQL reads the table."""

from django.db import migrations

from timeline.migrations._constraints import LookAtRows


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0045_places"),
    ]

    operations = [
        LookAtRows("scheduledtask", "timeline_task_has_slot"),
    ]
