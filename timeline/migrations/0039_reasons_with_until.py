"""Look whether the tasks that are there have a reason as 0038 asks for: nobody waits while PostgreSQL reads the table."""

from django.db import migrations

from timeline.migrations._constraints import LookAtRows


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0038_reason_until"),
    ]

    operations = [LookAtRows("scheduledtask", "timeline_task_end_has_reason")]
