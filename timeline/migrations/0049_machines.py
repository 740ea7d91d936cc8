"""Machines: the state of a run, its moves, and the moves that there may be."""

import datetime

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import timeline.ids
from timeline.migrations._constraints import AddConstraintForRowsToCome


def drop_function(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The one of the trigger that went with the columns."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION IF EXISTS timeline_refuse_move()")


def drop_trigger(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """It reads the columns. From Django 6.0 on, PostgreSQL does not drop a column that a trigger needs."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TRIGGER IF EXISTS timeline_guard_move ON timeline_timelinerun")


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0048_who_waits_for_others"),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, drop_function),  # First here, so it is last on the way back.
        migrations.CreateModel(
            name="Edge",
            fields=[
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("timeline", models.CharField(max_length=50)),
                ("from_state", models.CharField(max_length=50)),
                ("to_state", models.CharField(max_length=50)),
            ],
            options={
                "db_table": "timeline_edge",
                "constraints": [
                    models.UniqueConstraint(fields=("timeline", "from_state", "to_state"), name="timeline_edge_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="RunEntry",
            fields=[
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("seq", models.IntegerField()),
                ("at", models.DateTimeField()),
                ("from_state", models.CharField(blank=True, default="", max_length=50)),
                ("to_state", models.CharField(max_length=50)),
                ("back", models.CharField(blank=True, default="", max_length=50)),
                ("event", models.CharField(blank=True, default="", max_length=100)),
                ("cause_id", models.UUIDField(blank=True, null=True)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="entries",
                        to="timeline.timelinerun",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "run entries",
                "db_table": "timeline_runentry",
                "constraints": [models.UniqueConstraint(fields=("run", "seq"), name="timeline_run_entry_seq")],
            },
        ),
        migrations.AddField(
            model_name="timelinerun",
            name="state",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=50),
        ),
        migrations.AddField(
            model_name="timelinerun",
            name="state_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="timelinerun",
            name="back",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=50),
        ),
        migrations.AddField(
            model_name="timelinerun",
            name="moves",
            field=models.IntegerField(db_default=0, default=0, editable=False),
        ),
        AddConstraintForRowsToCome(
            model_name="timelinerun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("back", ""),
                    ("moves", 0),
                    ("state", ""),
                    ("state_at__isnull", True),
                )
                | models.Q(
                    models.Q(("state", ""), _negated=True),
                    ("state_at__isnull", False),
                    ("state_at__gte", datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                    ("state_at__lt", datetime.datetime(9000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                ),
                name="timeline_run_state_whole",
            ),
        ),
        migrations.RunPython(migrations.RunPython.noop, drop_trigger),  # Last here, so it is first on the way back.
    ]
