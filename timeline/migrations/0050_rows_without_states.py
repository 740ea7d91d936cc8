"""Look whether the rows that are there keep what 0049 asks for: nobody waits while PostgreSQL reads the table."""

from django.db import migrations

from timeline.migrations._constraints import LookAtRows


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0049_machines"),
    ]

    operations = [
        LookAtRows("timelinerun", "timeline_run_state_whole"),
    ]
