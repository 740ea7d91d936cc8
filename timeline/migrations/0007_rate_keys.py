"""A table of what shares a rate. No other table changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("timeline", "0006_index_what_people_did")]

    operations = [
        migrations.CreateModel(
            name="RateKey",
            fields=[
                ("key", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("starts", models.TextField(default="[]")),
                ("tail", models.DateTimeField(null=True)),
                ("braked_until", models.DateTimeField(null=True)),
                ("kept_until", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["kept_until"], name="timeline_rate_kept")],
            },
        )
    ]
