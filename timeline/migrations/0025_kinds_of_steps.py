"""Look whether the steps that are there are of kinds as 0024 asks for: nobody waits while PostgreSQL reads the table."""

from django.db import migrations

from timeline.migrations._constraints import LookAtRows


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0024_loops"),
    ]

    operations = [LookAtRows("steprecord", "timeline_step_kind_known")]
