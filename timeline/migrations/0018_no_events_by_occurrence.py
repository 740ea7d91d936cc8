"""Drop the index of events by when they occurred, which nobody asks any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0017_events_by_recording"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="event",
            name="timeline_event_entity",
        ),
    ]
