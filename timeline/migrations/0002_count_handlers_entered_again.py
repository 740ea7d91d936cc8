"""Totals count how often handlers were entered again. The database gives 0 as well: for processes that do not know the column."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("timeline", "0001_initial")]

    operations = [
        migrations.AddField("total", "reentered", models.PositiveBigIntegerField(default=0, db_default=0)),
    ]
