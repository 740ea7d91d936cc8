"""Settings of the processes of the fault kit: as of other processes that tests start, with little installed, to start fast."""

import os

from tests.process_settings import *  # noqa: F403

DATABASES["default"]["CONN_MAX_AGE"] = int(os.environ.get("TEST_CONN_MAX_AGE", "0"))  # noqa: F405

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_celery_beat",
    "timeline",
    "tests.faults.app",
]
AUTH_USER_MODEL = "auth.User"
MIDDLEWARE = []
TEMPLATES = []
ROOT_URLCONF = "tests.faults.urls"
