"""Look whether the tasks that are there keep the CHECKs of 0067: nobody waits while PostgreSQL reads the table."""

from django.db import migrations

from timeline.migrations._constraints import LookAtRows


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0067_checks_of_tasks"),
    ]

    operations = [
        LookAtRows(
            "scheduledtask",
            "timeline_task_has_slot",
            "timeline_task_state_known",
            "timeline_task_final_finished",
            "timeline_task_held_by_lease",
            "timeline_task_end_has_reason",
            "timeline_task_in_range",
        ),
    ]
