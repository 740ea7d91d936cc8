"""A small Django site, for peers that are an app of one or run in one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

FOLDER = Path(__file__).parent


def set_up(*apps: str, **more: Any) -> None:
    """Configure Django with these apps and the entities of the jobs, on the benchmark's database, with a lasting connection."""
    given = conninfo_to_dict(os.environ["BENCHMARK_DATABASE_URL"])
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    database = {setting: given.get(name, "") for setting, name in names.items()}
    settings.configure(
        INSTALLED_APPS=[*apps, "benchmarks"],
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": None, **database}},
        USE_TZ=True,
        SECRET_KEY="of the benchmarks only",  # noqa: S106
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        **more,
    )
    django.setup()
