"""Look whether the tasks that are there have a reason as 0028 asks for: nobody waits while PostgreSQL reads the table."""

from django.db import migrations

from timeline.migrations._constraints import LookAtRows


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0028_reason_run_ended"),
    ]

    operations = [LookAtRows("scheduledtask", "timeline_task_end_has_reason")]
