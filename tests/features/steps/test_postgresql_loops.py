"""Loops, and somebody else: who cancels, who holds the task's row, answers that are lost, and what a batch costs."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.models import Value
from django.db.models.functions import Concat
from django.utils import timezone

from tests.postgresql.meanwhile import attempt, elsewhere, lost_connection
from tests.testapp.models import Order
from timeline import Timeline, after, step, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepRecord
from timeline.registry import registry
from timeline.shortcuts import cancel, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

meanwhile: list = []  # What happens in the batches to come, one each; None: nothing.


class Counting(Timeline):
    """Counts orders up, four at a time."""

    entity = "testapp.Order"

    @task(after(), atomic=False)
    def work(self, order: Order) -> object:
        return self.each(self.count, Order.objects.filter(note="todo"), size=4)

    @step
    def count(self, batch: list[Order]) -> dict[str, int]:
        Order.objects.filter(pk__in=[order.pk for order in batch]).update(language=Concat("language", Value("1")))
        if meanwhile and (act := meanwhile.pop(0)):
            act()
        return {"orders": len(batch)}


class Calling(Counting):
    """The same by a plain step."""

    name = "counting"
    count = step(atomic=False)(Counting.count.method)


@pytest.fixture(params=[Counting, Calling], ids=["atomic", "plain"])
def row(request, db):
    meanwhile.clear()
    with only_timelines(request.param):
        start("counting", Order.objects.create(), started_at=timezone.now() - timedelta(days=1))
        Order.objects.bulk_create(Order(note="todo") for _ in range(10))
        yield ScheduledTask.objects.get()


def counted():
    """How often each order was counted."""
    return sorted(map(len, Order.objects.filter(note="todo").values_list("language", flat=True)), reverse=True)


def is_plain():
    """Whether it is the plain step that is declared."""
    return registry.task("counting.work")[0].cls is Calling


class TestACancelMeanwhile:
    def test_lets_no_further_batch_be_taken(self, row):
        meanwhile[:] = [None, lambda: elsewhere(lambda: cancel(row, reason="never mind"))]

        assert attempt(row) is None

        taken = 8 if is_plain() else 4  # The second batch of the atomic step is undone.
        assert counted() == [1] * taken + [0] * (10 - taken)
        assert StepRecord.objects.get().done == 4
        row.refresh_from_db()
        assert row.state == State.CANCELLED


class TestALostAnswer:
    """The database did what it was asked, and the connection broke before it could say so."""

    @pytest.fixture(autouse=True)
    def _patient(self):
        """Autovacuum may have a table locked, on a machine that is busy for longer than a step waits for whoever that is."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("timeline.features.steps.store.PATIENCE", timedelta(minutes=1))
            yield

    def test_of_a_batch_repeats_none(self, row, monkeypatch):
        if is_plain():
            meanwhile[:] = [None, self.break_at_the_next_record]
        else:
            meanwhile[:] = [None, lambda: self.break_after_the_commit(monkeypatch)]

        assert attempt(row).result == {"orders": 10}
        assert counted() == [1] * 10
        assert StepRecord.objects.get().done == 10

    def break_after_the_commit(self, monkeypatch):
        commit = connection._commit

        def and_break():
            commit()
            monkeypatch.undo()
            raise lost_connection()

        monkeypatch.setattr(connection, "_commit", and_break)

    def break_at_the_next_record(self):
        def wrapper(execute, *asked):
            connection.execute_wrappers.remove(wrapper)
            execute(*asked)
            raise lost_connection()

        connection.execute_wrappers.append(wrapper)

    @pytest.mark.parametrize("row", [Counting], indirect=True)
    def test_of_a_commit_that_was_not_done_is_no_failure(self, row, monkeypatch):
        def break_first():
            monkeypatch.undo()
            raise lost_connection()

        meanwhile[:] = [None, lambda: monkeypatch.setattr(connection, "_commit", break_first)]
        tried = attempt(row)

        assert (tried.state, tried.failures) == (State.RETRYABLE, 0)
        assert counted() == [1] * 4 + [0] * 6
        assert attempt(row, days=2).result == {"orders": 10}
        assert counted() == [1] * 10


class TestWhoHoldsTheTasksRow:
    def test_is_given_way_to_by_a_batch_that_has_locked_something_too(self, row):
        """Its transaction is undone, which counts as no failure; a plain batch waits."""
        held, let_go = threading.Event(), threading.Event()

        def hold():
            with transaction.atomic():
                ScheduledTask.objects.select_for_update().get(pk=row.pk)
                held.set()
                let_go.wait(0.5)
            connections.close_all()

        holder = threading.Thread(target=hold)
        meanwhile[:] = [lambda: (holder.start(), held.wait(120))]
        tried = attempt(row)
        holder.join(120)

        if is_plain():
            assert tried.state == State.COMPLETED
        else:
            assert (tried.state, tried.failures, counted()) == (State.RETRYABLE, 0, [0] * 10)
            assert attempt(row, days=2).state == State.COMPLETED
        assert counted() == [1] * 10


class TestTheRecord:
    def test_is_written_in_place(self, row):
        """One row, whatever the number of batches, and no new entry in its index for each."""
        Order.objects.bulk_create(Order(note="todo") for _ in range(990))

        assert attempt(row).result == {"orders": 1000}

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush()")
            cursor.execute(
                "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'timeline_step' "
                "AND schemaname = current_schema()"
            )
            written, in_place = cursor.fetchone()
        assert written > 200
        assert in_place > 0.9 * written
