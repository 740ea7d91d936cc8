"""As little of a site as `django.tasks` needs."""

from __future__ import annotations

import os
from pathlib import Path

from connecting import database

ALONE = bool(os.environ.get("FOREIGN_ALONE"))  # Without ours.

SECRET_KEY = "of no use to anybody"  # noqa: S105
USE_TZ = True
DATABASES = {"default": database()}
if "sqlite3" in DATABASES["default"]["ENGINE"]:  # Tests of coroutines write from a second thread.
    DATABASES["default"]["TEST"] = {"NAME": str(Path(os.environ["FOREIGN_FOLDER"]) / "test.sqlite3")}
SILENCED_SYSTEM_CHECKS = ["timeline.W002"]  # Small enough for SQLite.
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes"]
TEST_RUNNER = "standing_in.runner.InItsPlace"
if not ALONE:
    INSTALLED_APPS += ["timeline", "timeline.django_tasks"]
    TASKS = {"default": {"BACKEND": "timeline.django_tasks.TimelineBackend"}}
