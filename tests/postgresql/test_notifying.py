"""Notifying other processes: after the commit, seldom, and without harm."""

from __future__ import annotations

import logging
from contextlib import closing
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from timeline import Timeline, task
from timeline.models import ScheduledTask
from timeline.shortcuts import run_now, schedule
from timeline.signals import CHANNEL
from timeline.store import signal_dispatch as notify
from timeline.testing import only_timelines
from timeline.worker.listener import listen_on, own_connection

pytestmark = pytest.mark.django_db(transaction=True)


class Jobs(Timeline):
    entity = "testapp.Order"

    @task()
    def work(self, order) -> None: ...


@pytest.fixture(autouse=True)
def _only_these(monkeypatch):
    monkeypatch.setattr(notify, "_next", {})
    monkeypatch.setattr(notify, "GAP", 0)
    with only_timelines(Jobs):
        yield


@pytest.fixture
def heard():
    """Counts what another connection has heard since it was asked the last time."""
    other = own_connection("default")
    listen_on(other)

    def count():
        other.cursor().execute("SELECT 1")  # What was sent before arrives before the answer.
        return [notification.channel for notification in other.connection.notifies(timeout=0)]

    yield count
    other.close()


def ahead(**span):
    return timezone.now() + timedelta(**span)


class TestNotify:
    def test_comes_after_the_commit(self, heard, order):
        with transaction.atomic():
            schedule("jobs.work", order, at=ahead())
            assert heard() == []

        assert heard() == [CHANNEL]

    def test_does_not_come_when_the_transaction_fails(self, heard, order):
        with transaction.atomic():
            schedule("jobs.work", order, at=ahead())
            transaction.set_rollback(True)

        assert heard() == []

    def test_comes_for_what_is_due_soon_and_not_for_what_is_ahead(self, heard, order):
        schedule("jobs.work", order, at=ahead(days=1))
        assert heard() == []

        schedule("jobs.work", order, at=ahead(milliseconds=500))

        assert heard() == [CHANNEL]

    def test_comes_when_somebody_runs_a_task_now(self, heard, order):
        row = schedule("jobs.work", order, at=ahead(days=1)).task

        run_now(row, reason="asked for")

        assert heard() == [CHANNEL]

    def test_comes_once_for_many_at_about_the_same_time(self, heard, order, monkeypatch):
        monkeypatch.setattr(notify, "GAP", 600)

        for _ in range(20):
            schedule("jobs.work", order, at=ahead())

        assert heard() == [CHANNEL]

    def test_is_not_sent_inside_a_transaction(self, order, django_capture_on_commit_callbacks):
        """Within the transaction of a test, for one."""
        with transaction.atomic():
            with django_capture_on_commit_callbacks(execute=True) as callbacks:
                schedule("jobs.work", order, at=ahead())

            assert (len(callbacks), notify._next) == (1, {})

    def test_is_none_of_the_callers_queries(self, heard, order):
        """How many there are does not depend on what was announced before."""
        with CaptureQueriesContext(connection) as queries:
            schedule("jobs.work", order, at=ahead())

        assert heard() == [CHANNEL]
        assert [query["sql"] for query in queries if "NOTIFY" in query["sql"]] == []

    def test_harms_nobody_when_the_connection_breaks(self, order, caplog):
        def hang_up():
            with closing(own_connection("default")) as other, other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])

        caplog.set_level(logging.DEBUG, "timeline")
        with transaction.atomic():
            transaction.on_commit(hang_up)
            row = schedule("jobs.work", order, at=ahead()).task
        connection.close_if_unusable_or_obsolete()

        assert ScheduledTask.objects.get().pk == row.pk
        assert [(record.levelname, record.getMessage()[:22]) for record in caplog.records] == [
            ("DEBUG", "Nobody was notified; p")
        ]
