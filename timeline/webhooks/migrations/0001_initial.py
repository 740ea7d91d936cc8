import django.db.models.deletion
from django.db import migrations, models

import timeline.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                ("id", models.UUIDField(default=timeline.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("url", models.CharField(max_length=500, verbose_name="URL")),
                ("description", models.CharField(blank=True, default="", max_length=200, verbose_name="description")),
                ("topics", models.JSONField(default=list, verbose_name="what it is told")),
                (
                    "ordered",
                    models.CharField(
                        choices=[("entity", "what is about the same entity"), ("all", "everything"), ("no", "nothing")],
                        db_default="entity",
                        default="entity",
                        max_length=6,
                        verbose_name="in order",
                    ),
                ),
                ("secret", models.TextField(editable=False)),
                ("previous_secret", models.TextField(blank=True, default="", editable=False)),
                (
                    "rotated_at",
                    models.DateTimeField(blank=True, editable=False, null=True, verbose_name="secret changed at"),
                ),
                ("created_at", models.DateTimeField(editable=False, verbose_name="created at")),
                ("failures", models.PositiveIntegerField(default=0, editable=False, verbose_name="failures in a row")),
                (
                    "failing_since",
                    models.DateTimeField(blank=True, editable=False, null=True, verbose_name="failing since"),
                ),
                ("probe_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("quiet_until", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "disabled_at",
                    models.DateTimeField(blank=True, editable=False, null=True, verbose_name="disabled at"),
                ),
                (
                    "disabled_code",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("operator", "by a person"),
                            ("gone", "it answered 410: gone"),
                            ("failing", "it has failed for five days"),
                        ],
                        default="",
                        editable=False,
                        max_length=8,
                        verbose_name="disabled because",
                    ),
                ),
                (
                    "disabled_reason",
                    models.CharField(blank=True, default="", editable=False, max_length=200, verbose_name="reason"),
                ),
            ],
            options={
                "verbose_name": "endpoint",
                "verbose_name_plural": "endpoints",
                "db_table": "timeline_webhooks_endpoint",
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("entity_label", models.CharField(blank=True, default="", max_length=100)),
                ("entity_id", models.CharField(blank=True, default="", max_length=100)),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("source", models.UUIDField()),
                ("topic", models.CharField(max_length=200, verbose_name="topic")),
                ("order_key", models.CharField(blank=True, default="", max_length=201)),
                ("body", models.TextField(verbose_name="body")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("delivered", "delivered"),
                            ("failed", "given up"),
                            ("cancelled", "cancelled"),
                        ],
                        default="waiting",
                        max_length=9,
                        verbose_name="state",
                    ),
                ),
                (
                    "code",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("endpoint", "its endpoint was disabled"),
                            ("operator", "by a person"),
                            ("late", "it has not arrived within three days"),
                        ],
                        default="",
                        max_length=8,
                        verbose_name="reason",
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0, verbose_name="attempts")),
                ("created_at", models.DateTimeField(verbose_name="created at")),
                ("due_at", models.DateTimeField(verbose_name="due at")),
                ("give_up_at", models.DateTimeField(verbose_name="given up at")),
                ("ended_at", models.DateTimeField(blank=True, null=True, verbose_name="ended at")),
                ("leased_until", models.DateTimeField(blank=True, null=True)),
                ("token", models.UUIDField(blank=True, null=True)),
                (
                    "status",
                    models.PositiveSmallIntegerField(blank=True, null=True, verbose_name="status of the answer"),
                ),
                ("error", models.CharField(blank=True, default="", max_length=300, verbose_name="error")),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="timeline_webhooks.endpoint",
                        verbose_name="endpoint",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery",
                "verbose_name_plural": "deliveries",
                "db_table": "timeline_webhooks_delivery",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["endpoint", "due_at", "id"],
                        name="timeline_webhooks_due",
                    ),
                    models.Index(
                        condition=models.Q(("state", "waiting")),
                        fields=["endpoint", "order_key", "id"],
                        name="timeline_webhooks_first",
                    ),
                    models.Index(fields=["endpoint", "created_at"], name="timeline_webhooks_of"),
                    models.Index(
                        condition=models.Q(("state", "waiting"), _negated=True),
                        fields=["ended_at"],
                        name="timeline_webhooks_ended_at",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("endpoint", "source"), name="timeline_webhooks_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("state", "waiting")),
                            models.Q(models.Q(("state", "waiting"), _negated=True), ("ended_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="timeline_webhooks_ended",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("number", models.PositiveIntegerField()),
                ("at", models.DateTimeField()),
                ("duration_ms", models.PositiveIntegerField()),
                ("status", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("answer", models.TextField(blank=True, default="")),
                ("error", models.CharField(blank=True, default="", max_length=300)),
                (
                    "delivery",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tries",
                        to="timeline_webhooks.delivery",
                    ),
                ),
            ],
            options={
                "verbose_name": "attempt",
                "verbose_name_plural": "attempts",
                "db_table": "timeline_webhooks_attempt",
                "indexes": [models.Index(fields=["delivery", "id"], name="timeline_webhooks_tries")],
            },
        ),
        migrations.CreateModel(
            name="SenderSign",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "sender",
                "verbose_name_plural": "senders",
                "db_table": "timeline_webhooks_sender",
            },
        ),
    ]
