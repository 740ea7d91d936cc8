"""All tables, at once. The triggers and functions are put beside them after each ``migrate``: see ``timeline/store/triggers.py``."""

import datetime

import django.db.models.deletion
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import F, Q
from django.db.models.expressions import RawSQL
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, LessThan

import timeline.ids
from timeline.conditions import EarliestOf, IsSet, LatestOf, OneOf

_STATES = [
    ("scheduled", "scheduled"),
    ("available", "available"),
    ("pending", "pending"),
    ("active", "active"),
    ("retryable", "retryable"),
    ("completed", "completed"),
    ("discarded", "discarded"),
    ("cancelled", "cancelled"),
]
_OPEN = ["active", "available", "pending", "retryable", "scheduled"]
_FINAL = ["cancelled", "completed", "discarded"]
_REASONS = [
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
    ("hold", "hold"),
    ("state", "state left"),
    ("then", "moved its machine"),
]
_FIRST, _LAST = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (1970, 9000))
_DATES = [
    F("nominal_at"),
    F("scheduled_at"),
    F("created_at"),
    F("anchor_value"),
    F("expires_at"),
    F("started_at"),
    F("finished_at"),
]
_WHOLE = Q(
    Q(entity_id="", entity_label=""),
    Q(Q(("entity_label", ""), _negated=True), Q(("entity_id", ""), _negated=True)),
    _connector="OR",
)
_TIMELINE = models.Func(F("timeline"), output_field=models.TextField(), template="(%(expressions)s || '')")
_ENDED_AT = models.Func(
    F("ended_at"),
    output_field=models.DateTimeField(),
    template="COALESCE(%(expressions)s, '9999-01-01 00:00:00+00:00')",
)

# Foreign keys of rows that are written by the thousand, table and column: PostgreSQL has none of them, since it would check
# them for each row; triggers keep what is named (``KEEPERS``).
_WITHOUT_KEYS = [
    ("timeline_timelinerun", "started_by_id"),
    ("timeline_scheduledtask", "run_id"),
    ("timeline_scheduledtask", "cause_id"),
    ("timeline_logentry", "task_id"),
]


def set_up_postgresql(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """
    Vacuum tasks after a fiftieth of them has changed rather than a fifth, and drop the keys.

    What was due leaves entries at the beginning of the indexes that polls read from there: about eight pages for a thousand
    tasks, until a vacuum. Of ten million rows a fifth would be half a million tasks.
    """
    connection = schema_editor.connection
    if connection.vendor != "postgresql":
        return
    schema_editor.execute("ALTER TABLE timeline_scheduledtask SET (autovacuum_vacuum_scale_factor = 0.02)")
    while schema_editor.deferred_sql:  # Keys are made at the end of a migration, and these are to be there before.
        schema_editor.execute(schema_editor.deferred_sql.pop(0), params=None)
    with connection.cursor() as cursor:
        for table, column in _WITHOUT_KEYS:
            for name, found in connection.introspection.get_constraints(cursor, table).items():
                if found["foreign_key"] and found["columns"] == [column]:
                    schema_editor.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')


def drop_functions(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """On the way back, when nothing is left that calls them. Each ``migrate`` puts them, and the triggers."""
    if schema_editor.connection.vendor == "postgresql":
        called = (
            "record_step",
            "record_last_step",
            "record_place",
            "is_awaited",
            "move_runs",
            "to_move",
            "move_at_once",
            "first_due",
            "first_from",
            "ready_kinds",
            "ready_from",
            "stage_due",
            "stage_from",
            "claim_shares",
            "claim_from",
            "complete_tasks",
            "start_group",
            "start_from",
            "start_given",
            "start_one",
            "cancel_of_entity",
        )
        for name in ("refuse", "refuse_transition", "refuse_ended", "refuse_move", "keep", *called):
            schema_editor.execute(f"DROP FUNCTION IF EXISTS timeline_{name}")


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.RunPython(migrations.RunPython.noop, drop_functions),  # First here, so it is last on the way back.
        migrations.CreateModel(
            name="Event",
            fields=[
                ("entity_label", models.CharField(blank=True, default="", max_length=100)),
                ("entity_id", models.CharField(blank=True, default="", max_length=100)),
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("key", models.CharField(blank=True, default="", max_length=200)),
                ("payload", models.JSONField(blank=True, default=dict)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("occurred_at", models.DateTimeField()),
                ("recorded_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["entity_label", "entity_id", "name", "recorded_at"], name="timeline_event_recorded"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(("key", ""), _negated=True),
                        fields=("entity_label", "entity_id", "name", "key"),
                        name="timeline_event_once_per_key",
                    ),
                    models.CheckConstraint(condition=_WHOLE, name="timeline_event_entity_whole"),
                    models.CheckConstraint(
                        condition=Q(
                            ("occurred_at__gte", _FIRST),
                            ("occurred_at__lt", _LAST),
                            ("recorded_at__gte", _FIRST),
                            ("recorded_at__lt", _LAST),
                        ),
                        name="timeline_event_in_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TimelineRun",
            fields=[
                ("entity_label", models.CharField(blank=True, default="", max_length=100)),
                ("entity_id", models.CharField(blank=True, default="", max_length=100)),
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("timeline", models.CharField(max_length=50)),
                ("key", models.CharField(blank=True, default="", max_length=100)),
                ("params", models.JSONField(blank=True, default=dict)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("end_reason", models.CharField(blank=True, default="", max_length=200)),
                (
                    "started_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs_started",
                        to="timeline.event",
                    ),
                ),
                ("recorded_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("end_code", models.CharField(blank=True, db_default="", default="", editable=False, max_length=20)),
                ("once", models.BooleanField(db_default=False, default=False, editable=False)),
                ("pruned", models.BooleanField(db_default=False, default=False, editable=False)),
                ("is_cleared", models.BooleanField(db_default=False, default=False, editable=False)),
                ("state", models.CharField(blank=True, db_default="", default="", editable=False, max_length=50)),
                ("state_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("back", models.CharField(blank=True, db_default="", default="", editable=False, max_length=50)),
                ("moves", models.IntegerField(db_default=0, default=0, editable=False)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["entity_label", "entity_id", "started_at"], name="timeline_run_entity"),
                    models.Index(
                        condition=Q(("ended_at__isnull", False), ("pruned", False)),
                        fields=["ended_at", "id"],
                        name="timeline_run_prunable",
                    ),
                    models.Index(
                        condition=Q(("ended_at__isnull", False), ("state__gt", "")),
                        fields=["entity_label", "entity_id", "timeline", "key", "ended_at"],
                        name="timeline_run_last_moved",
                    ),
                    models.Index(
                        condition=Q(("ended_at__isnull", True), ("state__gt", "")),
                        fields=["timeline", "state", "state_at", "id"],
                        name="timeline_run_in_state",
                    ),
                    models.Index(_TIMELINE, _ENDED_AT, F("started_at"), name="timeline_run_of_timeline"),
                    models.Index(
                        _TIMELINE,
                        F("id"),
                        condition=Q(
                            Exact(
                                _ENDED_AT,
                                RawSQL("'9999-01-01 00:00:00+00:00'", (), output_field=models.DateTimeField()),
                            )
                        ),
                        name="timeline_run_open_of_timeline",
                    ),
                    models.Index(
                        condition=Q(
                            GreaterThan(
                                models.Func(
                                    F("state"), output_field=models.TextField(), template="(%(expressions)s || '')"
                                ),
                                models.Value(""),
                            )
                        ),
                        fields=["id"],
                        name="timeline_run_of_machine",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(("ended_at__isnull", True)),
                        fields=("entity_label", "entity_id", "timeline", "key"),
                        name="timeline_run_one_open",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("end_reason", ""), ("ended_at__isnull", True)),
                            Q(("ended_at__isnull", False), Q(("end_reason", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="timeline_run_end_has_reason",
                    ),
                    models.CheckConstraint(condition=_WHOLE, name="timeline_run_entity_whole"),
                    models.CheckConstraint(
                        condition=Q(
                            ("started_at__gte", _FIRST),
                            ("started_at__lt", _LAST),
                            Q(
                                ("ended_at__isnull", True),
                                Q(("ended_at__gte", _FIRST), ("ended_at__lt", _LAST)),
                                _connector="OR",
                            ),
                        ),
                        name="timeline_run_in_range",
                    ),
                    models.UniqueConstraint(
                        condition=Q(("once", True)),
                        fields=("entity_label", "entity_id", "timeline", "key"),
                        name="timeline_run_one_ever",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("back", ""), ("moves", 0), ("state", ""), ("state_at__isnull", True)),
                            Q(
                                Q(("state", ""), _negated=True),
                                ("state_at__isnull", False),
                                ("state_at__gte", _FIRST),
                                ("state_at__lt", _LAST),
                            ),
                            _connector="OR",
                        ),
                        name="timeline_run_state_whole",
                    ),
                ],
            },
        ),
        # At each change of a row, PostgreSQL compares the columns of all indexes. It finds a column at once if all before it have
        # a fixed length, and slowly behind a NULL. So first come numbers and times, then short texts, then what may be empty.
        # A database that was migrated step by step has them in another order. Nothing else depends on that.
        migrations.CreateModel(
            name="ScheduledTask",
            fields=[
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("scheduled_at", models.DateTimeField()),
                ("nominal_at", models.DateTimeField()),
                ("created_at", models.DateTimeField()),
                ("revision", models.PositiveIntegerField(default=1)),
                ("seq", models.PositiveIntegerField(default=0)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("lost", models.PositiveIntegerField(default=0)),
                ("max_attempts", models.PositiveIntegerField()),
                ("priority", models.SmallIntegerField(default=0)),
                ("slot", models.PositiveSmallIntegerField(db_default=0, default=0, editable=False)),
                ("awaits_other", models.BooleanField(db_default=False, default=False, editable=False)),
                ("state", models.CharField(choices=_STATES, max_length=9)),
                ("task_key", models.CharField(max_length=101)),
                ("entity_label", models.CharField(blank=True, default="", max_length=100)),
                ("entity_id", models.CharField(blank=True, default="", max_length=100)),
                ("occurrence", models.CharField(blank=True, default="", max_length=100)),
                ("queue", models.CharField(default="default", max_length=50)),
                ("limit_key", models.CharField(blank=True, db_default="", default="", editable=False, max_length=100)),
                ("awaits", models.CharField(blank=True, db_default="", default="", editable=False, max_length=500)),
                (
                    "awaits_label",
                    models.CharField(blank=True, db_default="", default="", editable=False, max_length=100),
                ),
                ("awaits_id", models.CharField(blank=True, db_default="", default="", editable=False, max_length=100)),
                ("reason_code", models.CharField(blank=True, choices=_REASONS, default="", max_length=20)),
                ("fingerprint", models.CharField(blank=True, db_default="", default="", editable=False, max_length=16)),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tasks",
                        to="timeline.timelinerun",
                    ),
                ),
                (
                    "cause",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tasks_caused",
                        to="timeline.event",
                    ),
                ),
                (
                    "previous",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="next_revisions",
                        to="timeline.scheduledtask",
                    ),
                ),
                ("lease_expires_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("claim_token", models.UUIDField(blank=True, null=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("sent_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("planned_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("anchor_value", models.DateTimeField(blank=True, null=True)),
                ("anchor_date", models.DateField(blank=True, null=True)),
                ("awaits_key", models.CharField(blank=True, db_default="", default="", editable=False, max_length=200)),
                ("held_until", models.CharField(blank=True, db_default="", default="", editable=False, max_length=7)),
                ("anchor", models.CharField(blank=True, default="", max_length=100)),
                ("definition_hash", models.CharField(blank=True, default="", max_length=16)),
                ("worker", models.CharField(blank=True, default="", max_length=100)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("error", models.TextField(blank=True, default="")),
                ("payload", models.JSONField(blank=True, default=dict)),
                ("result", models.JSONField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=Q(("state__in", ["retryable", "scheduled"])),
                        fields=["scheduled_at", "id"],
                        name="timeline_task_due",
                    ),
                    models.Index(
                        condition=Q(("state__in", ["active", "pending"])),
                        fields=["lease_expires_at", "id"],
                        name="timeline_task_given_up",
                    ),
                    models.Index(fields=["entity_label", "entity_id", "scheduled_at"], name="timeline_task_entity"),
                    models.Index(
                        fields=["task_key", "state", "scheduled_at"],
                        name="timeline_task_kind",
                        opclasses=["varchar_pattern_ops", "varchar_ops", "timestamptz_ops"],
                    ),
                    models.Index(
                        condition=Q(("state__in", _OPEN)),
                        fields=["state", "scheduled_at", "id"],
                        name="timeline_task_open",
                    ),
                    models.Index(
                        condition=Q(("previous__isnull", False)), fields=["previous"], name="timeline_task_previous"
                    ),
                    models.Index(
                        condition=Q(("cause__isnull", False), ("run__isnull", True)),
                        fields=["cause"],
                        name="timeline_task_caused",
                    ),
                    models.Index(
                        condition=Q(("finished_at__isnull", False), ("revision", 1), ("run__isnull", True)),
                        fields=["finished_at"],
                        name="timeline_adhoc_ended",
                    ),
                    models.Index(
                        condition=Q(("state", "discarded")),
                        fields=["fingerprint", "finished_at", "id"],
                        name="timeline_task_dead",
                    ),
                    models.Index(
                        condition=Q(("limit_key__gt", ""), ("state", "available")),
                        fields=["task_key", "limit_key", "priority", "scheduled_at", "id"],
                        name="timeline_task_limited",
                    ),
                    models.Index(
                        condition=Q(("limit_key", ""), ("state", "available")),
                        fields=["task_key", "priority", "scheduled_at", "id"],
                        name="timeline_task_free",
                    ),
                    models.Index(
                        condition=Q(("awaits__gt", ""), ("state__in", ["retryable", "scheduled"])),
                        fields=["awaits_label", "awaits_id", "awaits_other"],
                        name="timeline_task_awaited",
                    ),
                    models.Index(
                        condition=Q(("state", "cancelled")),
                        fields=["reason_code", "task_key", "scheduled_at", "id"],
                        name="timeline_task_cancelled",
                    ),
                    models.Index(
                        condition=Q(("state", "discarded")),
                        fields=["task_key", "finished_at", "id"],
                        name="timeline_task_failed",
                    ),
                    models.Index(
                        condition=Q(("state", "discarded")), fields=["fingerprint", "id"], name="timeline_task_alike"
                    ),
                    models.Index(
                        condition=Q(
                            Q(("state", "cancelled"), _negated=True),
                            Q(("reason_code__in", ["", "done"]), _negated=True),
                        ),
                        fields=["reason_code", "state", "scheduled_at", "id"],
                        name="timeline_task_reason",
                    ),
                    models.Index(
                        condition=Q(("state__in", _FINAL)),
                        fields=["state", "scheduled_at", "id", "finished_at"],
                        name="timeline_task_ended",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(("run__isnull", False)),
                        fields=("run", "task_key", "occurrence", "revision"),
                        name="timeline_task_revision",
                    ),
                    models.UniqueConstraint(
                        condition=Q(("run__isnull", True)),
                        fields=("entity_label", "entity_id", "task_key", "occurrence", "revision"),
                        name="timeline_adhoc_revision",
                    ),
                    models.UniqueConstraint(
                        condition=Q(("run__isnull", False), ("state__in", _OPEN)),
                        fields=("run", "task_key", "occurrence"),
                        name="timeline_task_one_open",
                    ),
                    models.UniqueConstraint(
                        condition=Q(("run__isnull", True), ("state__in", _OPEN)),
                        fields=("entity_label", "entity_id", "task_key", "occurrence"),
                        name="timeline_adhoc_one_open",
                    ),
                    models.CheckConstraint(condition=_WHOLE, name="timeline_task_entity_whole"),
                    models.UniqueConstraint(
                        condition=Q(("slot__gt", 0)), fields=("limit_key", "slot"), name="timeline_task_slot"
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            ("limit_key", ""), ("slot__gt", 0), ("lease_expires_at__isnull", True), _connector="OR"
                        ),
                        name="timeline_task_has_slot",
                    ),
                    models.CheckConstraint(
                        condition=Q(OneOf(F("state"), sorted(state for state, _ in _STATES))),
                        name="timeline_task_state_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(Exact(IsSet(F("finished_at")), OneOf(F("state"), _FINAL))),
                        name="timeline_task_final_finished",
                    ),
                    models.CheckConstraint(
                        condition=Q(Exact(IsSet(F("lease_expires_at")), OneOf(F("state"), ["active", "pending"]))),
                        name="timeline_task_held_by_lease",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            OneOf(F("reason_code"), sorted(code for code, _ in _REASONS)),
                            Q(("finished_at__isnull", True), ("reason_code", "")),
                            _connector="OR",
                        ),
                        name="timeline_task_end_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            GreaterThanOrEqual(EarliestOf(*_DATES), _FIRST), LessThan(LatestOf(*_DATES), _LAST)
                        ),
                        name="timeline_task_in_range",
                    ),
                ],
                "permissions": [
                    ("cancel_scheduledtask", "Can cancel scheduled task"),
                    ("move_scheduledtask", "Can move scheduled task"),
                    ("run_now_scheduledtask", "Can run scheduled task now"),
                    ("redrive_scheduledtask", "Can redrive scheduled task"),
                    ("decide_scheduledtask", "Can decide about steps of scheduled task"),
                    ("view_payload", "Can view payload, result and errors of scheduled task"),
                ],
                "verbose_name": "scheduled task",
                "verbose_name_plural": "upcoming events",
            },
        ),
        migrations.CreateModel(
            name="LogEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("seq", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("from_state", models.CharField(choices=_STATES, max_length=9)),
                ("to_state", models.CharField(choices=_STATES, max_length=9)),
                ("attempt", models.PositiveIntegerField()),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("reason_code", models.CharField(blank=True, choices=_REASONS, default="", max_length=20)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("detail", models.JSONField(blank=True, default=dict)),
                (
                    "task",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="log",
                        to="timeline.scheduledtask",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "log entries",
                "constraints": [models.UniqueConstraint(fields=("task", "seq"), name="timeline_log_seq")],
            },
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("site", models.CharField(blank=True, max_length=100)),
                ("adopted_at", models.DateTimeField()),
                ("polled_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name_plural": "identities",
                "constraints": [models.CheckConstraint(condition=Q(("id", 1)), name="timeline_identity_one")],
            },
        ),
        migrations.CreateModel(
            name="Pace",
            fields=[
                ("task_key", models.CharField(max_length=101, primary_key=True, serialize=False)),
                ("seconds", models.FloatField()),
                ("measured_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "paces",
            },
        ),
        migrations.CreateModel(
            name="Sign",
            fields=[
                ("worker", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("seen_at", models.DateTimeField()),
                ("missed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "timeline_worker",
            },
        ),
        migrations.CreateModel(
            name="Sweep",
            fields=[
                ("timeline", models.CharField(max_length=50, primary_key=True, serialize=False)),
                ("position", models.JSONField(default=dict)),
                ("begun_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={},
        ),
        migrations.CreateModel(
            name="Answer",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField()),
                ("headers", models.JSONField()),
                ("body", models.TextField()),
                ("made_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["made_at"], name="timeline_answer_made")],
            },
        ),
        migrations.CreateModel(
            name="StepRecord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("origin", models.UUIDField()),
                ("name", models.CharField(max_length=150)),
                ("task_id", models.UUIDField(blank=True, null=True)),
                ("attempt", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("done", "done"),
                            ("begun", "begun"),
                            ("loop", "under way"),
                            ("wait", "waiting"),
                            ("over", "over"),
                            ("note", "progress"),
                        ],
                        max_length=5,
                    ),
                ),
                ("recorded_at", models.DateTimeField()),
                ("seconds", models.FloatField()),
                ("digest", models.CharField(max_length=16)),
                ("code", models.CharField(blank=True, max_length=16)),
                ("result", models.JSONField(blank=True, null=True)),
                ("place", models.JSONField(blank=True, null=True)),
                ("done", models.BigIntegerField(blank=True, null=True)),
                ("total", models.BigIntegerField(blank=True, null=True)),
            ],
            options={
                "db_table": "timeline_step",
                "constraints": [
                    models.UniqueConstraint(fields=("origin", "name"), name="timeline_step_once"),
                    models.CheckConstraint(
                        condition=Q(("kind__in", ["begun", "done", "loop", "note", "over", "wait"])),
                        name="timeline_step_kind_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Hold",
            fields=[
                ("entity_label", models.CharField(blank=True, default="", max_length=100)),
                ("entity_id", models.CharField(blank=True, default="", max_length=100)),
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("entity", "entity"),
                            ("task", "task"),
                            ("timeline", "timeline"),
                            ("queue", "queue"),
                            ("everything", "everything"),
                        ],
                        max_length=10,
                    ),
                ),
                ("target", models.CharField(blank=True, default="", max_length=101)),
                ("names", models.JSONField(blank=True, default=list, editable=False)),
                (
                    "then",
                    models.CharField(
                        choices=[
                            ("run", "what is due runs"),
                            ("shift", "all of it moves on by the time it was held"),
                            ("expire", "what is due is cancelled"),
                        ],
                        default="run",
                        max_length=6,
                    ),
                ),
                ("until", models.DateTimeField(blank=True, null=True)),
                ("reason", models.CharField(max_length=200)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("created_at", models.DateTimeField()),
                ("lifted_at", models.DateTimeField(blank=True, null=True)),
                ("released_by", models.CharField(blank=True, default="", max_length=150)),
                ("place", models.UUIDField(blank=True, editable=False, null=True)),
                ("settled", models.PositiveIntegerField(default=0, editable=False)),
                ("released_at", models.DateTimeField(blank=True, null=True)),
                ("park_above", models.PositiveIntegerField(blank=True, editable=False, null=True)),
                ("park_within", models.DurationField(blank=True, editable=False, null=True)),
                ("release_reason", models.CharField(blank=True, db_default="", default="", max_length=200)),
            ],
            options={
                "verbose_name": "hold",
                "verbose_name_plural": "holds",
                "permissions": [("hold_tasks", "Can hold and release tasks")],
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("scope__in", ["entity", "everything", "queue", "task", "timeline"])),
                        name="timeline_hold_scope_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(("then__in", ["expire", "run", "shift"])), name="timeline_hold_then_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(
                                ("scope", "entity"),
                                ("target", ""),
                                Q(("entity_label", ""), _negated=True),
                                Q(("entity_id", ""), _negated=True),
                            ),
                            Q(("entity_id", ""), ("entity_label", ""), ("scope", "everything"), ("target", "")),
                            Q(
                                ("entity_id", ""),
                                ("entity_label", ""),
                                ("scope__in", ["queue", "task", "timeline"]),
                                Q(("target", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="timeline_hold_names_what",
                    ),
                    models.CheckConstraint(
                        condition=Q(("released_at__isnull", True), ("lifted_at__isnull", False), _connector="OR"),
                        name="timeline_hold_lifted_first",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            ("created_at__gte", _FIRST),
                            ("created_at__lt", _LAST),
                            Q(
                                ("until__isnull", True),
                                Q(("until__gte", _FIRST), ("until__lt", _LAST)),
                                _connector="OR",
                            ),
                            Q(
                                ("lifted_at__isnull", True),
                                Q(("lifted_at__gte", _FIRST), ("lifted_at__lt", _LAST)),
                                _connector="OR",
                            ),
                            Q(
                                ("released_at__isnull", True),
                                Q(("released_at__gte", _FIRST), ("released_at__lt", _LAST)),
                                _connector="OR",
                            ),
                        ),
                        name="timeline_hold_in_range",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("park_above__isnull", True), ("park_within__isnull", True)),
                            Q(
                                ("park_above__gte", 1),
                                ("park_within__isnull", False),
                                ("scope", "task"),
                                ("then", "run"),
                                ("until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="timeline_hold_of_brake",
                    ),
                    models.UniqueConstraint(
                        condition=Q(("park_above__isnull", False), ("released_at__isnull", True)),
                        fields=("target",),
                        name="timeline_hold_one_brake",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=Q(("released_at__isnull", True)),
                        fields=["created_at", "id"],
                        name="timeline_hold_open",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Opening",
            fields=[
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("limit_key", models.CharField(max_length=100)),
                ("task_key", models.CharField(max_length=101)),
                ("task_id", models.UUIDField()),
                ("slot", models.PositiveSmallIntegerField()),
                ("opened_at", models.DateTimeField()),
                ("reason", models.CharField(max_length=200)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
            ],
            options={
                "verbose_name": "opening of a limit",
                "verbose_name_plural": "openings of limits",
                "permissions": [("open_limit", "Can open a limit that is closed")],
            },
        ),
        migrations.CreateModel(
            name="Wake",
            fields=[
                ("entity_label", models.CharField(blank=True, default="", max_length=100)),
                ("entity_id", models.CharField(blank=True, default="", max_length=100)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(blank=True, default="", max_length=100)),
                ("key", models.CharField(blank=True, default="", max_length=200)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=_WHOLE, name="timeline_wake_entity_whole")],
            },
        ),
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
        migrations.CreateModel(
            name="BulkAction",
            fields=[
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("action", models.CharField(max_length=10)),
                ("filters", models.JSONField()),
                ("at", models.DateTimeField(blank=True, null=True)),
                ("spread", models.DurationField(blank=True, null=True)),
                ("reason", models.CharField(max_length=200)),
                ("asker", models.CharField(max_length=100)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("created_at", models.DateTimeField()),
                ("matched", models.PositiveIntegerField(default=0)),
                ("done", models.PositiveIntegerField(default=0)),
                ("skipped", models.JSONField(blank=True, default=dict)),
                ("place", models.UUIDField(blank=True, null=True)),
                ("is_stopped", models.BooleanField(default=False)),
                ("stopped_by", models.CharField(blank=True, default="", max_length=150)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("by_days", models.IntegerField(db_default=0, default=0)),
                ("by_seconds", models.IntegerField(db_default=0, default=0)),
            ],
            options={
                "verbose_name": "bulk action",
                "verbose_name_plural": "bulk actions",
                "default_permissions": (),
                "indexes": [
                    models.Index(condition=Q(("ended_at__isnull", True)), fields=["id"], name="timeline_bulk_open"),
                    models.Index(
                        condition=Q(("ended_at__isnull", False)), fields=["ended_at"], name="timeline_bulk_ended"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("is_stopped", False), ("ended_at__isnull", False), _connector="OR"),
                        name="timeline_bulk_stopped_ended",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            ("created_at__gte", _FIRST),
                            ("created_at__lt", _LAST),
                            Q(("at__isnull", True), Q(("at__gte", _FIRST), ("at__lt", _LAST)), _connector="OR"),
                            Q(
                                ("ended_at__isnull", True),
                                Q(("ended_at__gte", _FIRST), ("ended_at__lt", _LAST)),
                                _connector="OR",
                            ),
                        ),
                        name="timeline_bulk_in_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Figure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("hour", models.DateTimeField()),
                ("task_key", models.CharField(max_length=101)),
                ("started", models.PositiveBigIntegerField(default=0)),
                ("completed", models.PositiveBigIntegerField(default=0)),
                ("failed", models.PositiveBigIntegerField(default=0)),
                ("discarded", models.PositiveBigIntegerField(default=0)),
                ("cancelled", models.PositiveBigIntegerField(default=0)),
                ("lateness", models.JSONField(default=list)),
                ("duration", models.JSONField(default=list)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("hour", "task_key"), name="timeline_figure_hour")],
            },
        ),
        migrations.CreateModel(
            name="RollUp",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ("counted", models.BigIntegerField(default=0)),
                ("marked", models.BigIntegerField(default=0)),
                ("horizon", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=Q(("id", 1)), name="timeline_rollup_one")],
            },
        ),
        migrations.CreateModel(
            name="Admission",
            fields=[
                ("task_id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("task_key", models.CharField(max_length=101)),
                ("at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["task_key", "at"], name="timeline_admission_kind")],
            },
        ),
        migrations.CreateModel(
            name="Total",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task_key", models.CharField(max_length=101)),
                ("started", models.PositiveBigIntegerField(default=0)),
                ("completed", models.PositiveBigIntegerField(default=0)),
                ("failed", models.PositiveBigIntegerField(default=0)),
                ("discarded", models.PositiveBigIntegerField(default=0)),
                ("cancelled", models.PositiveBigIntegerField(default=0)),
                ("lateness", models.JSONField(default=list)),
                ("duration", models.JSONField(default=list)),
                ("late_seconds", models.FloatField(default=0)),
                ("taken_seconds", models.FloatField(default=0)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("task_key",), name="timeline_total_task_key")],
            },
        ),
        migrations.RunPython(set_up_postgresql, migrations.RunPython.noop),
    ]
