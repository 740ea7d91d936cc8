"""The app is asked for, or not there; what is set is checked."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from timeline.otel.conf import Settings, check_settings, get_settings

WITHOUT = """
import sys, django
django.setup()
import timeline.shortcuts, timeline.worker, timeline.webhooks.send, timeline.tasks
from timeline.hooks import hooks
hooks()
assert not any(name.startswith("opentelemetry") for name in sys.modules)
"""
MISSING = """
import sys, django
sys.modules["opentelemetry"] = None
django.setup()
"""


def run(text, settings):
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings}
    return subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False)


class TestTheLibrary:
    def test_is_imported_by_nobody_who_has_not_asked_for_it(self):
        done = run(WITHOUT, "project.settings")

        assert (done.returncode, done.stderr) == (0, "")

    def test_is_named_at_start_where_it_is_missing(self):
        done = run(MISSING, "tests.settings")

        assert "opentelemetry-api is not there. Install the extra otel." in done.stderr


class TestSettings:
    def test_have_defaults(self):
        assert get_settings() == Settings(KEEP=timedelta(days=90), LINK_AFTER=timedelta(minutes=5))

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ([], "Make it a dict"),
            ({"LINK": timedelta(1)}, r"'LINK'\] is not a setting"),
            ({"LINK_AFTER": 5}, "Give a value of type timedelta"),
            ({"KEEP": timedelta(0)}, "Give a positive value"),
        ],
    )
    def test_that_are_wrong_are_refused_and_told_at_start(self, settings, given, said):
        settings.TIMELINE_OTEL = given

        with pytest.raises(ImproperlyConfigured, match=said):
            get_settings()
        assert [found.id for found in check_settings()] == ["timeline_otel.E001"]
