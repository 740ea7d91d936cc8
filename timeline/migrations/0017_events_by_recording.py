"""
Index events by when they were recorded, as exits are looked for.

While an index is made, rows are read and not written. The one that it replaces goes in a migration of its own: while that waits for
all who read events, new ones wait for it.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0013_reason_timeout"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="event",
            index=models.Index(
                fields=["entity_label", "entity_id", "name", "recorded_at"], name="timeline_event_recorded"
            ),
        ),
    ]
