"""Contexts of traces: a table of its own, with no foreign key, so that no other table is locked."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="TraceContext",
            fields=[
                ("item", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("traceparent", models.CharField(max_length=55)),
                ("at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["at"], name="timeline_otel_context_at")],
            },
        ),
    ]
