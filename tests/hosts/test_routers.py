"""Database routers: rows are written where the host's routers have the entity written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import cancel, emit, explain, foreseen, move, preview, reconcile, schedule, start
from timeline.testing import StoryClock, expect
from timeline.worker import Worker


class OrdersElsewhere:
    """Keeps orders in the database ``other``, and has no opinion on anything else."""

    def db_for_read(self, model, **hints):
        return "other" if model is Order else None

    db_for_write = db_for_read


class Replicated:
    """Reads from ``other``, a replica, and writes to ``default``."""

    def db_for_read(self, model, **hints):
        return "other"

    def db_for_write(self, model, **hints):
        return "default"

    def allow_relation(self, one, another, **hints):
        return True


@pytest.mark.django_db(databases=["other"])  # Whatever asks the first database fails.
@pytest.mark.usefixtures("delivery")
class TestAnEntityInAnotherDatabase:
    @pytest.fixture(autouse=True)
    def _routed(self, settings):
        settings.DATABASE_ROUTERS = ["tests.hosts.test_routers.OrdersElsewhere"]

    @pytest.fixture
    def clock(self):
        with StoryClock(using="other") as clock:
            yield clock

    @pytest.fixture
    def order(self, clock):
        return Order.objects.create()

    @pytest.mark.parametrize(
        "begin", [lambda order: emit("order.placed", order), lambda order: start("delivery", order)]
    )
    def test_has_its_rows_there(self, order, clock, begin):
        begin(order)

        [done] = clock.advance(days=1)

        assert (done.task_key, done.result) == ("delivery.pack", "other")
        expect(order, using="other").open("ship")

    def test_is_run_there_by_a_worker(self, order, clock):
        row = schedule("delivery.call", order, at=clock.now).task

        ran = Worker("other").poll()

        row.refresh_from_db()
        assert (ran, row.state, row._state.db) == (1, "completed", "other")

    def test_is_followed_there(self, order, clock):
        emit("order.placed", order)

        order.save()
        reconcile(order)
        order.delete()

        assert TimelineRun.objects.using("other").get().end_reason == "the entity was deleted"

    def test_is_asked_about_there(self, order, clock):
        row = start("delivery", order).run.tasks.using("other").get()

        [moved] = move(row, at=clock.now + timedelta(days=3), reason="later")
        [cancelled] = cancel(moved, reason="no")

        assert "no" in explain(cancelled)
        assert foreseen(order) == []
        assert len(preview("delivery", order)) == 2


@pytest.mark.django_db(databases=["default", "other"])
@pytest.mark.usefixtures("delivery")
class TestAnEntityReadFromAReplica:
    @pytest.fixture(autouse=True)
    def _routed(self, settings):
        settings.DATABASE_ROUTERS = ["tests.hosts.test_routers.Replicated"]

    @pytest.fixture
    def order(self, clock):
        """An order that was replicated."""
        for alias in ("default", "other"):
            Order(pk=7).save(using=alias)
        return Order.objects.get()

    def test_has_its_rows_where_it_is_written(self, order):
        assert order._state.db == "other"

        emit("order.placed", order)

        assert ScheduledTask.objects.using("default").get().task_key == "delivery.pack"
        for model in (Event, TimelineRun, ScheduledTask, LogEntry):
            assert not model.objects.using("other").exists()

    def test_has_its_tasks_changed_where_they_are_written(self, order, clock):
        row = schedule("delivery.call", order, at=clock.now).task
        row._state.db = "other"  # As one that was read from the replica.

        [cancelled] = cancel(row, reason="no")

        assert cancelled._state.db == "default"
        assert ScheduledTask.objects.using("default").get().state == "cancelled"

    def test_runs(self, order, clock):
        emit("order.placed", order)

        assert [row.state for row in clock.advance(days=3)] == ["completed", "completed"]
