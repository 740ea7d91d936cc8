"""Settings of the demonstration site: SQLite, one worker process, mail into files."""

from __future__ import annotations

import os
import secrets
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import django

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("DEMO_DIR", BASE_DIR / ".demo"))

DEBUG = os.environ.get("DEBUG", "0") == "1"
# Signs the links to “my timeline”: one for each start unless given, and never in the repository.
SECRET_KEY = os.environ.get("SECRET_KEY") or secrets.token_urlsafe(50)
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    *(["django_celery_beat"] if find_spec("django_celery_beat") else []),
    "timeline",
    "project.accounts",
    "project.portal",
    "project.demo",
]
STORY = os.environ.get("DEMO_STORY", "trial")
if STORY == "settlement":
    INSTALLED_APPS += ["project.billing"]
# Webhooks, where the demo has made a key for their secrets. Its receiver is on this machine.
if "WEBHOOKS_KEY" in os.environ:
    INSTALLED_APPS += ["timeline.webhooks"]
    TIMELINE_WEBHOOKS = {"KEYS": [os.environ["WEBHOOKS_KEY"]], "ALLOW_LOOPBACK": True}
# Functions of Django's tasks, and jobs for workers in any language, where the demo has made a key for these.
if "JOBS_KEY" in os.environ:
    INSTALLED_APPS += ["timeline.django_tasks", "timeline.ojs"]
    TASKS: dict[str, dict[str, object]] = {"default": {"BACKEND": "timeline.django_tasks.TimelineBackend"}}
    TIMELINE_OJS = {"AUTHENTICATE": "project.demo.jobs.worker_of", "LEASE": timedelta(seconds=5)}
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "project.headers.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATA_DIR / "site.sqlite3",
        "OPTIONS": {
            # Writers queue up instead of failing when one that began by reading wants to write; readers never wait.
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            "timeout": 20,
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
MAIL_BACKEND, MAIL_FOLDER = "project.demo.mailing.MailServer", DATA_DIR / "mail"
if django.VERSION >= (6, 1):  # Which has MAILERS in place of EMAIL_….
    MAILERS = {"default": {"BACKEND": MAIL_BACKEND, "OPTIONS": {"file_path": MAIL_FOLDER}}}
else:
    EMAIL_BACKEND, EMAIL_FILE_PATH = MAIL_BACKEND, MAIL_FOLDER
DEFAULT_FROM_EMAIL = "Parley <hello@parley.example>"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "project" / "locale"]  # Of the pages of bookings; the package has its own.
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "project" / "static"]

# A demonstration is a small site: one machine, one worker.
SILENCED_SYSTEM_CHECKS = ["timeline.W002", "timeline_webhooks.W001"]

TRIAL_DAYS = 30

# Those whom billing calls: project/demo/outside.py. What it writes for people to read is below the demo's folder.
BILLING_OUTSIDE = os.environ.get("OUTSIDE_URL", "http://127.0.0.1:8010")

# The portal on which appointments are booked: project/demo/portal.py; and how much longer than in earnest a booking waits.
PORTAL_URL = os.environ.get("PORTAL_URL", "http://127.0.0.1:8011")
PORTAL_PACE = int(os.environ.get("PORTAL_PACE", "1"))

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "documents": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": DATA_DIR / "documents", "allow_overwrite": True},
    },
}

QUEUE_PREFIX = os.environ.get("QUEUE_PREFIX", "parley")
TIMELINE: dict[str, object] = {"QUEUE_PREFIX": QUEUE_PREFIX, "POLICY": "project.policy.Policy"}
if "DEMO_CLOCK" in os.environ:
    # A day passes in seconds, so the worker looks more often.
    # Workers are killed, so they are missed soon.
    TIMELINE |= {
        "CLOCK": "project.demo.clock.now",
        "POLL_INTERVAL": timedelta(milliseconds=100),
        "SILENCE": timedelta(seconds=2),
    }
    X_FRAME_OPTIONS = "SAMEORIGIN"  # Its page shows others beside each other.
if STORY in ("settlement", "booking"):
    # Workers are killed, and whoever operates it hears of what fails.
    TIMELINE |= {"SILENCE": timedelta(seconds=2), "ALERTS": ["operator@parley.example"]}

# With a broker, Celery's workers run what is due, and beat polls; without one, timeline_worker does both.
CELERY_BROKER_URL = os.environ.get("BROKER_URL", "")
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = TIME_ZONE
CELERY_DB_REUSE_MAX = 1000  # Messages before a worker connects to the database anew.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1  # A busy worker holds no messages that an idle one could have.
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

# The REST API under /api/v1/: for people who are logged in.
INSTALLED_APPS += ["rest_framework", "drf_spectacular", "drf_spectacular_sidecar"]
REST_FRAMEWORK = {"DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"]}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    # Not passed on: Celery's workers have a handler of their own on the root, which would print each line again.
    "loggers": {"timeline": {"handlers": ["console"], "level": "INFO", "propagate": False}},
}
