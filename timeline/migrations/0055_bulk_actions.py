"""What somebody wants to be done with all tasks that a question is about, and how far that is."""

import datetime

from django.db import migrations, models

import timeline.ids


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0054_runs_in_a_state"),
    ]

    operations = [
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
            ],
            options={
                "verbose_name": "bulk action",
                "verbose_name_plural": "bulk actions",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)), fields=["id"], name="timeline_bulk_open"
                    ),
                    models.Index(
                        condition=models.Q(("ended_at__isnull", False)), fields=["ended_at"], name="timeline_bulk_ended"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("is_stopped", False), ("ended_at__isnull", False), _connector="OR"),
                        name="timeline_bulk_stopped_ended",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("created_at__gte", datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                            ("created_at__lt", datetime.datetime(9000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                            models.Q(
                                ("at__isnull", True),
                                models.Q(
                                    ("at__gte", datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                    ("at__lt", datetime.datetime(9000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                ),
                                _connector="OR",
                            ),
                            models.Q(
                                ("ended_at__isnull", True),
                                models.Q(
                                    ("ended_at__gte", datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                    ("ended_at__lt", datetime.datetime(9000, 1, 1, 0, 0, tzinfo=datetime.UTC)),
                                ),
                                _connector="OR",
                            ),
                        ),
                        name="timeline_bulk_in_range",
                    ),
                ],
            },
        ),
    ]
