"""
Fills a database by its own version, and prints the rows: how the files beside this one were made.

It is run when a version is released, at its commit, with its tests' settings, and by no later version::

    TEST_FOLDER=/tmp python -m tests.upgrading.fill > tests/upgrading/version_X_Y_Z.json

``version_0_2_0.json`` was made by version 0.2.0, the first that sites have.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.apps import apps  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.migrations.recorder import MigrationRecorder  # noqa: E402

from tests.upgrading.databases import APPS, HOSTS  # noqa: E402
from tests.upgrading.story import live  # noqa: E402
from tests.upgrading.timelines import TIMELINES  # noqa: E402
from timeline import __version__  # noqa: E402
from timeline.testing import StoryClock, only_timelines  # noqa: E402

BEGIN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def rows_of(model):
    columns = model._meta.concrete_fields
    rows = [[plain(getattr(row, field.attname)) for field in columns] for row in model.objects.order_by("pk")]
    return {"columns": [field.attname for field in columns], "rows": rows}


def as_text(table):
    """One row a line; a traceback names files as they are in the package."""
    rows = ",\n".join(json.dumps(row, ensure_ascii=False).replace(f"{Path.cwd()}/", "") for row in table["rows"])
    return f'{{"model": "{table["model"]}", "columns": {json.dumps(table["columns"])}, "rows": [\n{rows}\n]}}'


def migrations():
    """The last one of each app of ours."""
    applied = MigrationRecorder(connection).applied_migrations()
    return {label: max(name for app, name in applied if app == label) for label in APPS}


def plain(value):
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, (str, int, float, bool, list, dict)) else str(value)


def main():
    with only_timelines(*TIMELINES):
        call_command("migrate", verbosity=0, run_syncdb=True)
        with StoryClock(BEGIN, raises=False) as clock:
            live(clock)
    about = {"version": __version__, "migrations": migrations(), "at": clock.now.isoformat()}
    models = [model for label in APPS for model in apps.get_app_config(label).get_models()]
    models += [apps.get_model(label) for label in HOSTS]
    print(f'{json.dumps(about)[:-1]}, "tables": [')
    print(",\n".join(as_text({"model": model._meta.label_lower, **rows_of(model)}) for model in models))
    print("]}")


if __name__ == "__main__":
    main()
