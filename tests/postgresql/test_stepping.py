"""Steps, and somebody else: who cancels, who holds the task's row, and answers that are lost."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from tests.testapp.models import Effect, Order
from timeline import Timeline, after, step, task
from timeline.clocks import story_now
from timeline.engine.running import run
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepRecord
from timeline.shortcuts import cancel, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

meanwhile: list = []  # What happens while the first step is under way.


class Parcel(Timeline):
    """Writes, calls, and writes again."""

    entity = "testapp.Order"

    @task(after(), atomic=False)
    def send(self, order: Order) -> str:
        self.pack(order)
        self.call()
        self.note()
        return "sent"

    @step
    def pack(self, order: Order) -> str:
        Effect.objects.create(name="packed")
        happen("pack")
        return "packed"

    @step(atomic=False)
    def call(self) -> str:
        Effect.objects.create(name="called")
        happen("call")
        return "called"

    @step
    def note(self) -> None:
        Effect.objects.create(name="noted")


def happen(step):
    if meanwhile and meanwhile[0][0] == step:
        meanwhile.pop(0)[1]()


def effects():
    return sorted(Effect.objects.values_list("name", flat=True))


def elsewhere(act):
    """Act in another thread, with a connection of its own."""

    def call():
        try:
            act()
        finally:
            connections.close_all()

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def row(db):
    meanwhile.clear()
    with only_timelines(Parcel):
        start("parcel", Order.objects.create(), started_at=timezone.now() - timedelta(days=1))
        yield ScheduledTask.objects.get()


def attempt(row, days=1):
    done = run(task_ids=[row.pk], clock=lambda: story_now("default") + timedelta(days=days), using="default")
    return done[0] if done else None


class TestACancelMeanwhile:
    def test_undoes_an_atomic_step_and_lets_no_other_begin(self, row):
        meanwhile.append(("pack", lambda: elsewhere(lambda: cancel(row, reason="never mind"))))

        assert attempt(row) is None

        assert effects() == []
        assert not StepRecord.objects.exists()
        row.refresh_from_db()
        assert row.state == State.CANCELLED

    def test_lets_nothing_follow_a_plain_step(self, row):
        meanwhile.append(("call", lambda: elsewhere(lambda: cancel(row, reason="never mind"))))

        assert attempt(row) is None

        assert effects() == ["called", "packed"]
        assert list(StepRecord.objects.values_list("name", flat=True)) == ["pack"]


class TestWhoHoldsTheTasksRow:
    def test_is_not_waited_for_long_by_a_step_that_has_locked_something_too(self, row):
        """It gives way, as it may be the one who wants what the step has; that counts as no failure."""
        held, let_go = threading.Event(), threading.Event()

        def hold():
            with transaction.atomic():
                ScheduledTask.objects.select_for_update().get(pk=row.pk)
                held.set()
                let_go.wait(10)
            connections.close_all()

        holder = threading.Thread(target=hold)

        def begin_to_hold():
            holder.start()
            assert held.wait(10)
            threading.Timer(0.5, let_go.set).start()

        meanwhile.append(("pack", begin_to_hold))
        tried = attempt(row)
        holder.join(10)

        assert (tried.state, tried.failures, tried.reason_code) == (State.RETRYABLE, 0, "error")
        assert effects() == []
        assert attempt(row, days=2).state == State.COMPLETED
        assert effects() == ["called", "noted", "packed"]

    def test_is_waited_for_by_a_plain_step(self, row):
        held, let_go = threading.Event(), threading.Event()

        def hold():
            with transaction.atomic():
                ScheduledTask.objects.select_for_update().get(pk=row.pk)
                held.set()
                let_go.wait(0.5)
            connections.close_all()

        holder = threading.Thread(target=hold)
        meanwhile.append(("call", lambda: (holder.start(), held.wait(10))))

        assert attempt(row).state == State.COMPLETED
        holder.join(10)


class TestALostAnswer:
    """The database did what it was asked, and the connection broke before it could say so."""

    def lost(self):
        connection.connection.close()
        try:
            with connection.wrap_database_errors:
                connection.connection.execute("SELECT 1")
        except OperationalError as error:
            return error
        raise AssertionError

    def test_of_a_commit_is_asked_for_again(self, row, monkeypatch):
        commit = connection._commit

        def and_break():
            commit()
            monkeypatch.undo()
            raise self.lost()

        meanwhile.append(("pack", lambda: monkeypatch.setattr(connection, "_commit", and_break)))

        assert attempt(row).state == State.COMPLETED
        assert effects() == ["called", "noted", "packed"]
        assert StepRecord.objects.count() == 3

    def test_of_a_commit_that_was_not_done_is_no_failure(self, row, monkeypatch):
        def break_first():
            monkeypatch.undo()
            raise self.lost()

        meanwhile.append(("pack", lambda: monkeypatch.setattr(connection, "_commit", break_first)))
        tried = attempt(row)

        assert (tried.state, tried.failures) == (State.RETRYABLE, 0)
        assert effects() == []
        assert attempt(row, days=2).state == State.COMPLETED
        assert effects() == ["called", "noted", "packed"]

    @pytest.mark.parametrize("done", [True, False])
    def test_of_a_record_does_not_repeat_a_plain_step(self, row, done):
        with self.breaking_at("INSERT INTO timeline_step", 2, done=done):
            assert attempt(row).state == State.COMPLETED

        assert effects() == ["called", "noted", "packed"]
        assert StepRecord.objects.count() == 3

    @contextmanager
    def breaking_at(self, sql, nth, *, done):
        seen = []

        def wrapper(execute, asked, *given):
            if asked.lstrip().startswith(sql):
                seen.append(asked)
                if len(seen) == nth:
                    if done:
                        execute(asked, *given)
                    raise self.lost()
            return execute(asked, *given)

        with connection.execute_wrapper(wrapper):
            yield
        assert len(seen) > nth


class TestTheSameStepElsewhere:
    def test_is_taken_over(self, row):
        """Another attempt of the same task, thought to be dead, has recorded it meanwhile."""

        def record():
            StepRecord.objects.create(
                origin=row.pk,
                name="pack",
                task_id=row.pk,
                attempt=1,
                kind="done",
                recorded_at=timezone.now(),
                seconds=0,
                digest="",
                code="",
                result="theirs",
            )

        meanwhile.append(("pack", lambda: elsewhere(record)))

        assert attempt(row).state == State.COMPLETED
        assert effects() == ["called", "noted"]
