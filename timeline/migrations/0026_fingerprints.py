from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0025_kinds_of_steps"),
    ]

    operations = [
        migrations.AddField(
            model_name="scheduledtask",
            name="fingerprint",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=16),
        ),
    ]
