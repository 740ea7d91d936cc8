"""The one setting."""

from dataclasses import fields
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from timeline.conf import Settings, get_settings

NAMES = [field.name for field in fields(Settings)]


class TestGetSettings:
    def test_has_defaults_without_the_setting(self, settings):
        del settings.TIMELINE

        assert get_settings() == Settings()

    def test_takes_what_is_given_and_leaves_the_rest(self, settings):
        settings.TIMELINE = {"MAX_ATTEMPTS": 9, "AUTOSTART": False}

        assert get_settings() == Settings(MAX_ATTEMPTS=9, AUTOSTART=False)

    def test_reads_the_setting_at_each_call(self, settings):
        settings.TIMELINE = {"MAX_LOST": 7}
        first = get_settings()
        settings.TIMELINE = {"MAX_LOST": 8}

        assert (first.MAX_LOST, get_settings().MAX_LOST) == (7, 8)

    @pytest.mark.parametrize("name", NAMES)
    def test_takes_each_default_when_it_is_spelled_out(self, settings, name):
        settings.TIMELINE = {name: getattr(Settings(), name)}

        assert get_settings() == Settings()

    @pytest.mark.parametrize("name", ["MAX_ATTEMPT", "lease", 3])
    def test_refuses_an_unknown_name_and_lists_the_known(self, settings, name):
        settings.TIMELINE = {name: 1}

        with pytest.raises(ImproperlyConfigured) as caught:
            get_settings()

        assert f"TIMELINE[{name!r}] is not a setting" in str(caught.value)
        assert all(known in str(caught.value) for known in NAMES)

    @pytest.mark.parametrize(("name", "meant"), [("MAX_ATTEMPT", "MAX_ATTEMPTS"), ("lease", "LEASE")])
    def test_asks_for_the_name_that_is_meant(self, settings, name, meant):
        settings.TIMELINE = {name: 1}

        with pytest.raises(ImproperlyConfigured, match=f"Did you mean {meant!r}"):
            get_settings()

    @pytest.mark.parametrize("name", NAMES)
    def test_refuses_a_value_of_the_wrong_kind(self, settings, name):
        settings.TIMELINE = {name: 1.5}

        with pytest.raises(
            ImproperlyConfigured, match=rf"TIMELINE\['{name}'\] is (1.5|of another type). Give a value of type"
        ):
            get_settings()

    @pytest.mark.parametrize(
        ("name", "value"), [("MAX_ATTEMPTS", True), ("AUTOSTART", 1), ("LEASE", 60), ("MAX_LOST", None)]
    )
    def test_tells_kinds_apart_that_look_alike(self, settings, name, value):
        settings.TIMELINE = {name: value}

        with pytest.raises(ImproperlyConfigured, match="Give a value of type"):
            get_settings()

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("MAX_ATTEMPTS", 0),
            ("MAX_LOST", -1),
            ("LEASE", timedelta(0)),
            ("POLL_INTERVAL", timedelta(seconds=-1)),
        ],
    )
    def test_refuses_a_value_that_is_not_positive(self, settings, name, value):
        settings.TIMELINE = {name: value}

        with pytest.raises(ImproperlyConfigured, match="Give a positive value"):
            get_settings()

    @pytest.mark.parametrize(
        ("name", "value"), [("MAX_ATTEMPTS", 1), ("MAX_LOST", 1), ("LEASE", timedelta(microseconds=1))]
    )
    def test_takes_the_smallest_positive_value(self, settings, name, value):
        settings.TIMELINE = {name: value}

        assert getattr(get_settings(), name) == value

    @pytest.mark.parametrize("path", [None, "project.demo.clock.now"])
    def test_takes_a_clock_or_none(self, settings, path):
        settings.TIMELINE = {"CLOCK": path}

        read = get_settings().CLOCK

        assert read == path


class TestOverdueAfter:
    def test_is_two_polls(self):
        assert Settings(POLL_INTERVAL=timedelta(seconds=5)).overdue_after == timedelta(seconds=10)


class TestWhole:
    def test_must_be_a_dict(self, settings):
        settings.TIMELINE = None

        with pytest.raises(ImproperlyConfigured, match="Make it a dict"):
            get_settings()


class TestTexts:
    @pytest.mark.parametrize("value", ["https://example.com", "http://localhost:8000", "https://example.com/shop/"])
    def test_takes_an_address_of_the_site(self, settings, value):
        settings.TIMELINE = {"BASE_URL": value}

        assert value == get_settings().BASE_URL

    @pytest.mark.parametrize(
        "value",
        [
            "example.com",
            "//example.com",
            "ftp://example.com",
            "javascript:alert(1)",
            "https://ada:pw@example.com",
            "https://example.com?next=",
            "https://example.com/#",
            "https://",
            "https://example.com\nX: y",
        ],
    )
    def test_refuses_an_address_that_is_none_of_a_site(self, settings, value):
        settings.TIMELINE = {"BASE_URL": value}

        with pytest.raises(ImproperlyConfigured, match=r"TIMELINE\['BASE_URL'\] is .*Give scheme and host"):
            get_settings()

    @pytest.mark.parametrize("value", ["tiny", b"a token of many letters"])
    def test_refuses_a_token_that_is_none_and_does_not_show_it(self, settings, value):
        settings.TIMELINE = {"METRICS_TOKEN": value}

        with pytest.raises(ImproperlyConfigured, match=r"TIMELINE\['METRICS_TOKEN'\]") as caught:
            get_settings()

        assert str(value) not in str(caught.value)


class TestKinds:
    def test_are_asked_again_where_a_value_is_equal_and_of_another_kind(self, settings):
        settings.TIMELINE = {"AUTOSTART": True}
        get_settings()
        settings.TIMELINE = {"AUTOSTART": 1}

        with pytest.raises(ImproperlyConfigured, match="AUTOSTART"):
            get_settings()
