"""Look whether the rows that are there keep what 0034 and 0035 ask for: nobody waits while PostgreSQL reads the tables."""

from django.db import migrations

from timeline.migrations._constraints import LookAtRows


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0036_who_waits"),
    ]

    operations = [
        LookAtRows("scheduledtask", "timeline_task_end_has_reason"),
        LookAtRows("steprecord", "timeline_step_kind_known"),
    ]
