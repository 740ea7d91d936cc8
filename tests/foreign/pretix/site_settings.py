"""pretix as its own settings make it, a plugin that has a timeline, and Django's admin, which pretix does without."""

from __future__ import annotations

import os
from pathlib import Path

from connecting import database

ALONE = bool(os.environ.get("FOREIGN_ALONE"))  # Without ours.
DATABASE = database()
DATA = Path(os.environ["FOREIGN_FOLDER"]) / "data"
os.environ["DATA_DIR"] = str(DATA)
os.environ["PRETIX_DATABASE_BACKEND"] = DATABASE["ENGINE"].rpartition(".")[2]  # pretix decides by it what it can do.
DATA.mkdir(exist_ok=True)

from pretix.settings import *  # noqa: E402, F403
from pretix.settings import INSTALLED_APPS, MIDDLEWARE, STORAGES  # noqa: E402

DATABASES = {"default": DATABASE}
SITE_URL = "http://testserver"
EMAIL_BACKEND = EMAIL_CUSTOM_SMTP_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = str(Path(os.environ["FOREIGN_FOLDER"]) / "mail")
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
COMPRESS_ENABLED = COMPRESS_OFFLINE = False
COMPRESS_PRECOMPILERS = ()
FETCH_ECB_RATES = False
SESSION_ENGINE = "django.contrib.sessions.backends.db"
SILENCED_SYSTEM_CHECKS = [
    "timeline.W002",  # Small enough for SQLite.
    "fields.E304",  # Both the admin and pretix have a LogEntry; that of the last app gets the name `logentry_set`.
]

INSTALLED_APPS = ["django.contrib.admin", *INSTALLED_APPS, "dunning", "django_celery_beat"]
if not ALONE:
    INSTALLED_APPS += ["timeline", "drf_spectacular", "drf_spectacular_sidecar"]
    at = MIDDLEWARE.index("pretix.multidomain.middlewares.MultiDomainMiddleware") + 1
    MIDDLEWARE = [*MIDDLEWARE[:at], "dunning.addresses.Addresses", *MIDDLEWARE[at:]]
