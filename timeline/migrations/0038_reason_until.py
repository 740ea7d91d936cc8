"""A series of a task that is repeated has ended: a reason of its own."""

from django.db import migrations, models

from timeline.migrations._constraints import AddConstraintForRowsToCome
from timeline.migrations._reasons import known_before_as

CODES = [
    ("done", "done"),
    ("exit", "exit"),
    ("guard", "guard"),
    ("handler", "handler's decision"),
    ("operator", "operator"),
    ("superseded", "superseded"),
    ("moved", "moved"),
    ("predecessor", "predecessor"),
    ("expired", "expired"),
    ("entity_gone", "entity gone"),
    ("definition", "definition"),
    ("worker_lost", "worker lost"),
    ("released", "released"),
    ("error", "error"),
    ("timeout", "timeout"),
    ("retry_after", "asked to be retried later"),
    ("shadow", "in shadow"),
    ("in_doubt", "in doubt"),
    ("run_ended", "run ended"),
    ("overlap", "overlap"),
    ("waiting", "waiting"),
    ("event", "event"),
    ("until", "until"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0037_rows_with_waits"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="scheduledtask", name="timeline_task_end_has_reason"),
        migrations.AlterField(
            model_name="logentry",
            name="reason_code",
            field=models.CharField(blank=True, choices=CODES, default="", max_length=20),
        ),
        migrations.AlterField(
            model_name="scheduledtask",
            name="reason_code",
            field=models.CharField(blank=True, choices=CODES, default="", max_length=20),
        ),
        known_before_as("guard", code="until"),
        AddConstraintForRowsToCome(
            model_name="scheduledtask",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("reason_code__in", sorted(code for code, _label in CODES)),
                    models.Q(
                        ("reason_code", ""), ("state__in", ["active", "available", "pending", "retryable", "scheduled"])
                    ),
                    _connector="OR",
                ),
                name="timeline_task_end_has_reason",
            ),
        ),
    ]
