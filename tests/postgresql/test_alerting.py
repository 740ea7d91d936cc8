"""Two discard what fails alike at the same time: people are told once, and by whoever comes through."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, connections, transaction
from django.test import override_settings

from tests.testapp.models import Order
from timeline import Retry, Timeline, task
from timeline.engine.groups import run
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.store.alerts import TELL, alert_discards
from timeline.testing import only_timelines
from timeline.timelines import Alerts

pytestmark = [pytest.mark.only_postgresql, pytest.mark.django_db(transaction=True)]


class Doomed(Timeline):
    """Fails for good at once."""

    entity = "testapp.Order"

    @task(retry=Retry(max_attempts=1))
    def fail(self, order):
        raise ValueError("no")


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Doomed, Alerts), override_settings(TIMELINE={"ALERTS": ["ops@example.com"]}):
        yield


def waits_for_a_lock(most=6000):
    """See whether another connection waits for a lock by now."""
    for _ in range(most):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            if cursor.fetchone()[0]:
                return True
            cursor.execute("SELECT pg_sleep(0.02), pg_stat_clear_snapshot()")
    return False


class TestTwoAtOnce:
    @pytest.mark.parametrize("commits", [True, False])
    def test_write_one_alert_whoever_comes_through(self, make_task, now, commits):
        first, second = (make_task(state=State.DISCARDED, fingerprint="1" * 16) for _ in range(2))
        written = []

        def discard_too():
            try:
                written.extend(alert_discards([second], now=now, using="default"))
            finally:
                connections.close_all()

        other = threading.Thread(target=discard_too)
        with transaction.atomic():
            alert_discards([first], now=now, using="default")
            other.start()
            assert waits_for_a_lock()
            transaction.set_rollback(not commits)
        other.join(120)

        assert len(written) == (0 if commits else 1)
        assert ScheduledTask.objects.get(task_key=TELL).payload["task"] == str((first if commits else second).pk)

    def test_of_many_workers_write_one_alert(self, clock):
        rows = [schedule("doomed.fail", Order.objects.create(), at=clock.now).task for _ in range(12)]
        errors = []

        def work(mine):
            try:
                for row in mine:
                    run(task_ids=[row.pk], clock=lambda: clock.now, using="default")
            except Exception as error:  # noqa: BLE001
                errors.append(error)
            finally:
                connections.close_all()

        threads = [threading.Thread(target=work, args=(rows[number::4],)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

        assert errors == []
        assert ScheduledTask.objects.filter(state=State.DISCARDED).count() == 12
        assert ScheduledTask.objects.filter(task_key=TELL).count() == 1
