"""Settings of processes that tests start for the demo's billing: mail goes into files, alerts to the operator."""

import os
from pathlib import Path

import django

from tests.process_settings import *  # noqa: F403
from tests.process_settings import INSTALLED_APPS, TIMELINE

INSTALLED_APPS = [*INSTALLED_APPS, "project.billing"]
TIMELINE = {**TIMELINE, "ALERTS": ["operator@parley.example"]}
MAIL_FOLDER = Path(os.environ.get("TEST_FOLDER", "")) / "mail"
if django.VERSION >= (6, 1):
    MAILERS = {
        "default": {
            "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
            "OPTIONS": {"file_path": MAIL_FOLDER},
        }
    }
else:
    EMAIL_BACKEND, EMAIL_FILE_PATH = "django.core.mail.backends.filebased.EmailBackend", MAIL_FOLDER
