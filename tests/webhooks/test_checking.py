"""Checks of this app's settings."""

import pytest

from timeline.webhooks.checks import check_settings, check_topics_told
from timeline.webhooks.models import Endpoint


class TestCheckSettings:
    def test_is_silent_when_all_is_well(self):
        assert [found.id for found in check_settings(None)] in ([], ["timeline_webhooks.W001"])

    def test_asks_for_the_name_that_is_meant(self, settings):
        settings.TIMELINE_WEBHOOKS = {**settings.TIMELINE_WEBHOOKS, "CONCURENCY": 3}

        [error] = check_settings(None)

        assert error.id == "timeline_webhooks.E001"
        assert error.msg.startswith("TIMELINE_WEBHOOKS['CONCURENCY'] is not a setting. Did you mean 'CONCURRENCY'?")

    @pytest.mark.parametrize("name", ["TIMELINE_WEBHOOK", "TIMELINES_WEBHOOKS"])
    def test_sees_a_setting_that_is_called_almost_so(self, settings, name):
        setattr(settings, name, {"CONCURRENCY": 3})

        [error] = check_settings(None)

        assert error.msg == f"{name} in the settings is read by nobody. Did you mean 'TIMELINE_WEBHOOKS'?"


class TestCheckTopicsTold:
    def test_is_silent_where_all_is_told(self, endpoint_for):
        endpoint_for("task.discarded", "task.discarded.told.ask")

        assert check_topics_told(None, databases=["default"]) == []

    def test_sees_what_nothing_tells_any_more_and_asks_for_what_is_meant(self, endpoint_for):
        endpoint = endpoint_for("task.discarded")
        Endpoint.objects.update(topics=["task.discarded.told.aks", "task.discarded"])

        [warning] = check_topics_told(None, databases=["default"])

        assert warning.id == "timeline_webhooks.W002"
        assert warning.msg == (
            f"The endpoint {endpoint} of the database 'default' wants 'task.discarded.told.aks', which nothing tells."
        )
        assert warning.hint.startswith("Did you mean 'task.discarded.told.ask'?")

    def test_leaves_an_endpoint_that_is_told_nothing(self, endpoint_for, now):
        endpoint_for("task.discarded")
        Endpoint.objects.update(topics=["gone"], disabled_at=now)

        assert check_topics_told(None, databases=["default"]) == []

    def test_asks_no_database_that_it_was_not_given(self, endpoint_for):
        endpoint_for("task.discarded")
        Endpoint.objects.update(topics=["gone"])

        assert check_topics_told(None) == []
