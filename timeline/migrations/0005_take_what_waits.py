"""Who has taken what waits for people: a table of its own, with no foreign key, so that no other table is locked."""

from django.db import migrations, models

import timeline.ids


class Migration(migrations.Migration):
    dependencies = [("timeline", "0004_permit_applying_plans")]

    operations = [
        migrations.CreateModel(
            "Taking",
            fields=[
                (
                    "id",
                    models.UUIDField(primary_key=True, default=timeline.ids.uuid7, editable=False, serialize=False),
                ),
                ("item", models.UUIDField()),
                ("visit", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("holder", models.CharField(max_length=150)),
                ("actor", models.CharField(max_length=150, blank=True, default="")),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "timeline_taking",
                "indexes": [models.Index(fields=["holder", "id"], name="timeline_taking_holder")],
                "constraints": [
                    models.UniqueConstraint(fields=["item", "visit", "seq"], name="timeline_taking_seq"),
                ],
            },
        ),
    ]
