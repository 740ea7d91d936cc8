"""Settings of the tests: the site's, with the models of the tests beside its own."""

from datetime import timedelta

from project.settings import *  # noqa: F403
from project.settings import DATABASES, INSTALLED_APPS
from tests.databases import databases

DEBUG = False
SECRET_KEY = "of the tests only"  # noqa: S105
INSTALLED_APPS = [*INSTALLED_APPS, "timeline.webhooks", "project.billing", "tests.testapp", "tests.hosts.warehouse"]
INSTALLED_APPS += ["timeline.django_tasks", "tests.django_tasks.shop"]  # of django_tasks
INSTALLED_APPS += ["timeline.ojs"]  # of ojs
INSTALLED_APPS += ["timeline.otel"]  # of otel
DATABASES = databases(DATABASES["default"])
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # Quick: nobody has these passwords to guess.
TIMELINE = {}
TASKS = {  # of django_tasks
    "default": {"BACKEND": "timeline.django_tasks.TimelineBackend", "QUEUES": ["default", "mail"]},
    "patient": {
        "BACKEND": "timeline.django_tasks.TimelineBackend",
        "OPTIONS": {"retry": {"max_attempts": 3, "base": timedelta(minutes=1), "jitter": 0}},
    },
    "elsewhere": {"BACKEND": "timeline.django_tasks.TimelineBackend", "OPTIONS": {"database": "other", "atomic": True}},
}
TIMELINE_WEBHOOKS = {
    "KEYS": ["b2YgdGhlIHRlc3RzIG9ubHksIG5vdCBhIHNlY3JldCE="],
}
