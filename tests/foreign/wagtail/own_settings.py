"""Wagtail's own tests: alone; with ours and a timeline about all pages; and with no timeline known, see how-to/testing.md."""

from __future__ import annotations

import os

from wagtail.test.settings import *  # noqa: F403
from wagtail.test.settings import INSTALLED_APPS

HOW = os.environ["FOREIGN_OWN"]  # alone, followed or unknown

if HOW != "alone":
    INSTALLED_APPS = [*INSTALLED_APPS, "timeline", "watching"]
    TIMELINE = {"AUTOSTART": False}
    SILENCED_SYSTEM_CHECKS = ["timeline.W001", "timeline.W002"]  # Their database is SQLite in memory.
if HOW == "unknown":
    TEST_RUNNER = "watching.runner.Unknown"
