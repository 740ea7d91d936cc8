"""Look whether the holds that are there keep what 0057 asks for: nobody waits while PostgreSQL reads the table."""

from django.db import migrations

from timeline.migrations._constraints import LookAtRows


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0057_brake"),
    ]

    operations = [
        LookAtRows("hold", "timeline_hold_of_brake"),
    ]
