"""A permission of its own to let rows follow a changed timeline in the admin. No table changes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("timeline", "0003_hold_tags")]

    operations = [
        migrations.AlterModelOptions(
            "scheduledtask",
            {
                "permissions": [
                    ("cancel_scheduledtask", "Can cancel scheduled task"),
                    ("move_scheduledtask", "Can move scheduled task"),
                    ("run_now_scheduledtask", "Can run scheduled task now"),
                    ("redrive_scheduledtask", "Can redrive scheduled task"),
                    ("decide_scheduledtask", "Can decide about steps of scheduled task"),
                    ("apply_plan", "Can let scheduled tasks follow a changed timeline"),
                    ("view_payload", "Can view payload, result and errors of scheduled task"),
                ],
                "verbose_name": "scheduled task",
                "verbose_name_plural": "upcoming events",
            },
        ),
    ]
