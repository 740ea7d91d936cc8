"""
No table changes. ``migrate`` installs functions whose plans PostgreSQL keeps, and this migration says so: a site that has not
applied it has to migrate. See ``timeline/store/kept_statements.py``.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("timeline", "0071_shorter_steps"),
    ]

    operations = []
