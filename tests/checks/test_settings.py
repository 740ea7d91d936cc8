"""Checks of the settings."""

import pytest

from tests.checks import ids
from timeline.checks import check_settings


class TestCheckSettings:
    def test_is_silent_when_all_is_well(self):
        assert check_settings(None) == []

    @pytest.mark.parametrize("given", [{"LEESE": 1}, {"LEASE": 60}, {"AUTOSTART": "no"}, {"MAX_LOST": 0}], ids=str)
    def test_sees_a_wrong_setting(self, settings, given):
        settings.TIMELINE = given

        [error] = check_settings(None)

        assert error.id == "timeline.E001"
        assert next(iter(given)) in error.msg

    def test_sees_that_times_would_be_naive(self, settings):
        settings.USE_TZ = False

        assert ids(check_settings(None)) == ["timeline.E002"]
