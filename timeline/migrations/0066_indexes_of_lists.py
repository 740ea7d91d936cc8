"""
Lists by when tasks ended, and by why: the index of what has ended has the first, too, and what has a reason that few have
gets an index of its own.
"""

from django.db import migrations, models

from timeline.migrations._indexes import AddIndexBesideWrites, RemoveIndexBesideWrites

_ENDED = models.Q(("state__in", ["cancelled", "completed", "discarded"]))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("timeline", "0065_index_of_groups"),
    ]

    operations = [
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=models.Q(
                    models.Q(("state", "cancelled"), _negated=True),
                    models.Q(("reason_code__in", ["", "done"]), _negated=True),
                ),
                fields=["reason_code", "state", "scheduled_at", "id"],
                name="timeline_task_reason",
            ),
        ),
        AddIndexBesideWrites(
            model_name="scheduledtask",
            index=models.Index(
                condition=_ENDED,
                fields=["state", "scheduled_at", "id", "finished_at"],
                name="timeline_task_ended_then",
            ),
        ),
        RemoveIndexBesideWrites(model_name="scheduledtask", name="timeline_task_ended"),
        migrations.RenameIndex(
            model_name="scheduledtask", old_name="timeline_task_ended_then", new_name="timeline_task_ended"
        ),
    ]
