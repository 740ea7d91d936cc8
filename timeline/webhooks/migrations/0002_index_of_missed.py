"""
What has not arrived is found by an index. It is small, but to build it the table is read once: where millions of deliveries are
kept, make it beforehand with ``CREATE INDEX CONCURRENTLY``, and have this migration faked.
"""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("timeline_webhooks", "0001_initial")]

    operations = [
        migrations.AddIndex(
            "delivery",
            models.Index(
                fields=["state", "id"],
                condition=Q(state__in=["cancelled", "failed"]),
                name="timeline_webhooks_missed",
            ),
        ),
    ]
