"""The sweep of a process that polls."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import pytest
from django.db import connection
from django.utils import timezone

from tests.testapp.models import Order
from timeline import Timeline, at, task
from timeline.clocks import story_now
from timeline.models import Figure, LogEntry, ScheduledTask
from timeline.shortcuts import start
from timeline.testing import only_timelines
from timeline.worker import Poller, Worker
from timeline.worker.loop import Sweeper

pytestmark = pytest.mark.django_db(transaction=True)


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order): ...


class ThreadWatch:
    """A broker that takes all there is."""

    def connect(self): ...

    def send(self, batch, *, using): ...


@pytest.fixture(autouse=True)
def _only_these():
    with only_timelines(Delivery):
        yield


@pytest.fixture
def drifted():
    """When a task is to be due, of an order that was updated behind its back."""
    order = Order.objects.create(ships_at=timezone.now() + timedelta(days=1))
    start("delivery", order)
    Order.objects.update(ships_at=order.ships_at + timedelta(days=1))
    return order.ships_at + timedelta(days=1)


@pytest.fixture
def at_once(monkeypatch):
    """Let the first step be due at once."""
    monkeypatch.setattr("timeline.worker.loop.REST", 0.0)


class TestAProcessThatPolls:
    def test_sweeps_as_a_worker(self, drifted, at_once):
        Worker("default").poll()

        assert ScheduledTask.objects.get().scheduled_at == drifted

    def test_sweeps_as_a_poller(self, drifted, at_once):
        Poller("default", ThreadWatch()).turn()

        assert ScheduledTask.objects.get().scheduled_at == drifted

    def test_lets_a_worker_run_what_is_due_before(self, monkeypatch):
        """A step takes longer than most tasks do."""
        seen = []
        monkeypatch.setattr(Sweeper, "turn", lambda self, clock: seen.append(ScheduledTask.objects.get().state))
        start("delivery", Order.objects.create(ships_at=timezone.now() - timedelta(minutes=1)))

        Worker("default").poll()

        assert seen == ["completed"]


class TestStep:
    def test_does_nothing_at_first(self, drifted, django_assert_num_queries):
        sweeper = Sweeper("default")

        with django_assert_num_queries(0):
            sweeper.turn(lambda: story_now("default"))

    def test_outlives_what_the_database_refuses(self, drifted, at_once, caplog):
        """Tables of a release that has not migrated yet, say: polls go on."""
        sweeper = Sweeper("default")

        with refusing_sweeps():
            sweeper.turn(lambda: story_now("default"))
        sweeper.turn(lambda: story_now("default"))

        assert "The sweep failed" in caplog.text
        assert ScheduledTask.objects.get().scheduled_at == drifted


def refusing_sweeps():
    """Let the database know no table of sweeps."""

    def renamed(execute, sql, *given):
        return execute(sql.replace("timeline_sweep", "timeline_not_there"), *given)

    return connection.execute_wrapper(renamed)


class TestFigures:
    def test_are_counted_beside_the_sweep(self, db, now, monkeypatch):
        counted = []
        monkeypatch.setattr("timeline.worker.loop.REST", 0)
        monkeypatch.setattr("timeline.features.maintenance.hooks.roll_up", lambda **given: counted.append(given))
        sweeper = Sweeper("default")

        sweeper.turn(lambda: now)

        assert [given["using"] for given in counted] == ["default"]

    def test_that_are_old_are_deleted_though_there_is_always_something_to_count(self, now, at_once, settings):
        settings.TIMELINE = {**settings.TIMELINE, "FIGURES_RETENTION": timedelta(days=1)}
        Figure.objects.create(hour=now - timedelta(days=2), task_key="delivery.ship")
        sweeper = Sweeper("default")

        def ended():
            task = ScheduledTask.objects.get()
            LogEntry.objects.create(
                task=task, at=now, from_state="active", to_state="completed", attempt=1, seq=next(seqs)
            )

        seqs = count(100)
        start("delivery", Order.objects.create(ships_at=now))
        for _ in range(200):
            ended()
            sweeper._next = 0.0
            sweeper.turn(lambda: now)
            if not Figure.objects.filter(hour__lt=now - timedelta(days=1)).exists():
                break

        assert not Figure.objects.filter(hour__lt=now - timedelta(days=1)).exists()
