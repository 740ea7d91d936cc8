"""Checks of the settings."""

from datetime import timedelta

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

    def test_asks_for_the_name_that_is_meant(self, settings):
        settings.TIMELINE = {"LEESE": 1}

        assert "Did you mean 'LEASE'?" in check_settings(None)[0].msg

    @pytest.mark.parametrize("name", ["TIMELINES", "TIME_LINE"])
    def test_sees_a_setting_that_is_called_almost_so(self, settings, name):
        setattr(settings, name, {"MAX_LOST": 2})

        [error] = check_settings(None)

        assert error.id == "timeline.E001"
        assert error.msg == f"{name} in the settings is read by nobody. Did you mean 'TIMELINE'?"

    @pytest.mark.parametrize("value", [{"COLOUR": "red"}, "MAX_LOST", {}], ids=str)
    def test_leaves_a_setting_of_the_host(self, settings, value):
        settings.TIMELINES = value

        assert check_settings(None) == []

    @pytest.mark.parametrize("name", ["TIMELINE_OJS", "TIMELINE_OTEL"])
    def test_leaves_those_of_installed_apps(self, settings, name):
        setattr(settings, name, {"LEASE": timedelta(seconds=5)})

        assert check_settings(None) == []

    def test_sees_that_times_would_be_naive(self, settings):
        settings.USE_TZ = False

        assert ids(check_settings(None)) == ["timeline.E002"]
