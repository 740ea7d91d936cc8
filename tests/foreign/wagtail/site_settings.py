"""A Wagtail site with users keyed by UUIDs, a transaction for each request, and page models that inherit from one another."""

from __future__ import annotations

import os
from pathlib import Path

from connecting import database

ALONE = bool(os.environ.get("FOREIGN_ALONE"))  # Without ours.

SECRET_KEY = "of no use to anybody"  # noqa: S105
DEBUG = False
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "site_urls"
USE_TZ = True
TIME_ZONE = "Europe/Berlin"
LANGUAGE_CODE = "en"
STATIC_URL = "/static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "people.User"
DATABASES = {"default": {**database(), "ATOMIC_REQUESTS": True}}
SILENCED_SYSTEM_CHECKS = ["timeline.W002"]  # Small enough for SQLite.
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = str(Path(os.environ["FOREIGN_FOLDER"]) / "mail")

WAGTAIL_SITE_NAME = "Overlay"
WAGTAILADMIN_BASE_URL = "http://testserver"
WAGTAILADMIN_COMMENTS_ENABLED = False

INSTALLED_APPS = [
    "people",
    "pages",
    "wagtail.contrib.redirects",
    "wagtail.sites",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.admin",
    "wagtail",
    "taggit",
    "rest_framework",
    "django_filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
if "postgresql" in DATABASES["default"]["ENGINE"]:
    INSTALLED_APPS += ["django.contrib.postgres"]  # Wagtail's search wants it there.
if not ALONE:
    INSTALLED_APPS += ["timeline", "drf_spectacular", "drf_spectacular_sidecar"]

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
