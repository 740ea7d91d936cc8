"""Holds: what somebody says is not to run for a while."""

import datetime

from django.db import migrations, models

import timeline.ids


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0039_reasons_with_until"),
    ]

    operations = [
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
            ],
            options={
                "verbose_name": "hold",
                "verbose_name_plural": "holds",
                "permissions": [("hold_tasks", "Can hold and release tasks")],
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("scope__in", ["entity", "everything", "queue", "task", "timeline"])),
                        name="timeline_hold_scope_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("then__in", ["expire", "run", "shift"])), name="timeline_hold_then_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("scope", "entity"),
                                ("target", ""),
                                models.Q(("entity_label", ""), _negated=True),
                                models.Q(("entity_id", ""), _negated=True),
                            ),
                            models.Q(("entity_id", ""), ("entity_label", ""), ("scope", "everything"), ("target", "")),
                            models.Q(
                                ("entity_id", ""),
                                ("entity_label", ""),
                                ("scope__in", ["queue", "task", "timeline"]),
                                models.Q(("target", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="timeline_hold_names_what",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("released_at__isnull", True), ("lifted_at__isnull", False), _connector="OR"
                        ),
                        name="timeline_hold_lifted_first",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("created_at__gte", datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                            ("created_at__lt", datetime.datetime(9000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                            models.Q(
                                ("until__isnull", True),
                                models.Q(
                                    ("until__gte", datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                    ("until__lt", datetime.datetime(9000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("lifted_at__isnull", True),
                                models.Q(
                                    ("lifted_at__gte", datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                    ("lifted_at__lt", datetime.datetime(9000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("released_at__isnull", True),
                                models.Q(
                                    ("released_at__gte", datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                    ("released_at__lt", datetime.datetime(9000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="timeline_hold_in_range",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("released_at__isnull", True)),
                        fields=["created_at", "id"],
                        name="timeline_hold_open",
                    )
                ],
            },
        ),
    ]
