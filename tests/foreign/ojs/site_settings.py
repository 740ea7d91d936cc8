"""As little of a site as serves jobs; everybody may do everything, and it listens on this machine alone."""

from __future__ import annotations

from connecting import database

SECRET_KEY = "of no use to anybody"  # noqa: S105
USE_TZ = True
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "site_urls"
DATABASES = {"default": database()}
SILENCED_SYSTEM_CHECKS = ["timeline.W002", "timeline_ojs.W001"]
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "timeline", "timeline.ojs"]
TIMELINE_OJS = {"ANYBODY": True, "TEST_DIRECTIVES": True}
