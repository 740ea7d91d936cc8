"""Alerts: one for each group and hour, where there is anybody to tell."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import override_settings

from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.store.alerts import TELL, alert_discards, alert_missed, alert_unpolled


@pytest.fixture(autouse=True)
def told():
    with override_settings(TIMELINE={"ALERTS": ["ops@example.com"]}):
        yield


class TestAlertDiscards:
    def test_writes_one_for_each_group(self, make_task, now):
        tasks = [
            make_task(state=State.DISCARDED, task_key=key, fingerprint=mark)
            for key, mark in [("a.b", "1" * 16), ("a.b", "1" * 16), ("a.b", "2" * 16), ("a.c", "3" * 16)]
        ]

        assert len(alert_discards(tasks, now=now, using="default")) == 3
        assert alert_discards(tasks, now=now + timedelta(minutes=59), using="default") == []
        assert len(alert_discards(tasks, now=now + timedelta(hours=1), using="default")) == 3

    def test_has_room_for_the_longest_names(self, make_task, now):
        row = make_task(state=State.DISCARDED, task_key="a" * 101, fingerprint="1" * 16)

        assert len(alert_discards([row], now=now, using="default")) == 1

    def test_writes_none_of_an_alert(self, make_task, now):
        row = make_task(state=State.DISCARDED, task_key=TELL, fingerprint="1" * 16)

        assert alert_discards([row], now=now, using="default") == []

    def test_asks_the_database_nothing_where_nothing_was_discarded(self, now, django_assert_num_queries, db):
        with django_assert_num_queries(0):
            assert alert_discards([], now=now, using="default") == []

    def test_takes_one_statement_for_any_number(self, make_task, now, django_assert_num_queries):
        rows = [make_task(state=State.DISCARDED, fingerprint=f"{number:016}") for number in range(20)]

        with django_assert_num_queries(1):
            assert len(alert_discards(rows, now=now, using="default")) == 20


class TestAlertMissed:
    def test_writes_one_an_hour_for_each_timeline(self, now, db):
        assert len(alert_missed({"nightly": "02:00 was passed over."}, now=now, using="default")) == 1
        assert alert_missed({"nightly": "03:00 was passed over."}, now=now, using="default") == []
        assert len(alert_missed({"nightly": "", "weekly": "x" * 9_000}, now=now, using="default")) == 1
        assert all(len(row.payload["text"]) <= 500 for row in ScheduledTask.objects.all())


class TestAlertUnpolled:
    def test_gives_that_of_this_hour(self, now, db):
        alert = alert_unpolled("Nobody polls it.", now=now, using="default")

        assert alert_unpolled("Nobody polls it.", now=now, using="default") == alert
        assert alert_unpolled("Nobody polls it.", now=now + timedelta(hours=1), using="default") != alert

    def test_gives_none_where_there_is_nobody_to_tell(self, now, db):
        with override_settings(TIMELINE={"ALERTS": []}):
            assert alert_unpolled("Nobody polls it.", now=now, using="default") is None
