"""Steps, and somebody else: who cancels, who holds the task's row, and answers that are lost."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.db.backends.postgresql.base import ServerBindingCursor
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.postgresql.meanwhile import attempt, elsewhere, lost_connection
from tests.testapp.models import Effect, Order
from timeline import Timeline, after, step, task
from timeline.clocks import story_now
from timeline.engine.groups import run
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepRecord
from timeline.shortcuts import cancel, schedule, start
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

    @task(atomic=False)
    async def collect(self, order: Order) -> None:
        await self.fetch()
        await self.fetch.keyed("again")()

    @step(atomic=False)
    async def fetch(self) -> None:
        await sync_to_async(happen)("fetch")

    @task(atomic=False)
    def pay(self, order: Order) -> str:
        return self.transfer()

    @step(atomic=False, once=True)
    def transfer(self) -> str:
        Effect.objects.create(name="paid")
        return "paid"


def happen(step):
    if meanwhile and meanwhile[0][0] == step:
        meanwhile.pop(0)[1]()


def effects():
    return sorted(Effect.objects.values_list("name", flat=True))


@pytest.fixture
def row(db):
    meanwhile.clear()
    with only_timelines(Parcel):
        start("parcel", Order.objects.create(), started_at=timezone.now() - timedelta(days=1))
        yield ScheduledTask.objects.get()


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

    def test_lets_nothing_follow_an_async_step_and_ends_no_neighbour(self, row):
        first, other = (
            schedule("parcel.collect", Order.objects.create(), at=timezone.now() - timedelta(days=1)).task
            for _ in range(2)
        )
        meanwhile.append(("fetch", lambda: elsewhere(lambda: cancel(first, reason="never mind"))))

        done = run(task_ids=[first.pk, other.pk], clock=lambda: story_now("default"), using="default")

        assert [(task.pk, task.state) for task in done] == [(other.pk, State.COMPLETED)]
        assert StepRecord.objects.filter(origin=first.pk).count() == 0
        assert StepRecord.objects.filter(origin=other.pk).count() == 2


class TestWhoHoldsTheTasksRow:
    def test_is_not_waited_for_long_by_a_step_that_has_locked_something_too(self, row):
        """It gives way, as it may be the one who wants what the step has; that counts as no failure."""
        held, let_go = threading.Event(), threading.Event()

        def hold():
            with transaction.atomic():
                ScheduledTask.objects.select_for_update().get(pk=row.pk)
                held.set()
                let_go.wait(120)
            connections.close_all()

        holder = threading.Thread(target=hold)

        def begin_to_hold():
            holder.start()
            assert held.wait(120)
            threading.Timer(0.5, let_go.set).start()

        meanwhile.append(("pack", begin_to_hold))
        tried = attempt(row)
        holder.join(120)

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
        meanwhile.append(("call", lambda: (holder.start(), held.wait(120))))

        assert attempt(row).state == State.COMPLETED
        holder.join(120)


class TestTheCommitOfAnAtomicStep:
    """It is sent with the record of the step, where that can be done: one trip to the database less."""

    def test_goes_with_its_record(self, row):
        with CaptureQueriesContext(connection) as asked:
            assert attempt(row).state == State.COMPLETED

        assert [query["sql"].count("timeline_record_last_step") for query in asked if "; COMMIT" in query["sql"]] == [
            1,
            1,
        ]
        assert effects() == ["called", "noted", "packed"]

    def test_goes_with_it_where_the_driver_prepares_what_is_a_plain_steps(self, row, monkeypatch):
        connection.ensure_connection()
        monkeypatch.setattr(connection.connection, "prepare_threshold", 0)

        asked = []

        def look(execute, sql, *rest):
            asked.append(sql)
            return execute(sql, *rest)

        with connection.execute_wrapper(look):
            assert attempt(row).state == State.COMPLETED

        assert len([sql for sql in asked if "; COMMIT" in sql]) == 2
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%timeline_record_step%'")
            assert cursor.fetchone() == (1,)
        assert effects() == ["called", "noted", "packed"]

    def test_goes_by_itself_where_the_server_puts_all_values_in(self, row, monkeypatch):
        connection.ensure_connection()
        monkeypatch.setattr(connection.connection, "cursor_factory", ServerBindingCursor)

        with CaptureQueriesContext(connection) as asked:
            assert attempt(row).state == State.COMPLETED

        assert not [query for query in asked if "; COMMIT" in query["sql"]]
        assert effects() == ["called", "noted", "packed"]

    def test_is_none_where_the_step_asked_for_a_rollback(self, row):
        meanwhile.append(("pack", lambda: transaction.set_rollback(True)))

        assert attempt(row).state == State.RETRYABLE

        assert effects() == []
        assert not StepRecord.objects.exists()

    def test_calls_what_waits_for_it_once(self, row):
        called = []
        meanwhile.append(("pack", lambda: transaction.on_commit(lambda: called.append(effects()))))

        assert attempt(row).state == State.COMPLETED

        assert called == [["packed"]]

    def test_leaves_the_connection_as_it_was(self, row):
        level = connection.connection.isolation_level

        attempt(row)

        assert connection.get_autocommit()
        assert not connection.in_atomic_block
        assert connection.connection.isolation_level == level


class TestALostAnswer:
    """The database did what it was asked, and the connection broke before it could say so."""

    @pytest.fixture(autouse=True)
    def _patient(self):
        """Autovacuum may have a table locked, on a machine that is busy for longer than a step waits for whoever that is."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("timeline.features.steps.store.PATIENCE", timedelta(minutes=1))
            yield

    @pytest.mark.parametrize("done", [True, False])
    def test_of_a_record_that_is_committed_with_it_is_asked_for(self, row, done):
        with self.breaking_at("COMMIT", 1, done=done, again=done):
            tried = attempt(row)

        assert tried.failures == 0
        assert (tried.state, effects()) == (
            (State.COMPLETED, ["called", "noted", "packed"]) if done else (State.RETRYABLE, [])
        )
        assert done or attempt(row, days=2).state == State.COMPLETED
        assert effects() == ["called", "noted", "packed"]

    @pytest.mark.parametrize("done", [True, False])
    def test_of_a_commit_by_itself_is_asked_for(self, row, done, monkeypatch):
        """Where the server puts the values in, the COMMIT is not sent with the record."""
        commit, broken = connection._commit, []

        def break_first():
            is_first = not broken
            broken.append(is_first)
            if done or not is_first:
                commit()
            if is_first:
                raise lost_connection()

        meanwhile.append(("pack", lambda: monkeypatch.setattr(connection, "_commit", break_first)))
        monkeypatch.setattr("timeline.features.steps.store._can_commit", lambda connection: False)
        tried = attempt(row)

        assert (tried.state, tried.failures) == (State.COMPLETED if done else State.RETRYABLE, 0)
        assert done or attempt(row, days=2).state == State.COMPLETED
        assert effects() == ["called", "noted", "packed"]
        assert StepRecord.objects.count() == 3

    @pytest.mark.parametrize("done", [True, False])
    def test_of_a_record_does_not_repeat_a_plain_step(self, row, done):
        with self.breaking_at("%(result)s,\n    NULL", 1, done=done):  # In no transaction, so without patience.
            assert attempt(row).state == State.COMPLETED

        assert effects() == ["called", "noted", "packed"]
        assert StepRecord.objects.count() == 3

    @pytest.mark.parametrize("statement", ["timeline_record_step", "WITH task AS"])
    @pytest.mark.parametrize("done", [True, False])
    def test_of_a_step_that_is_called_once_leaves_no_doubt(self, row, statement, done):
        paying = schedule("parcel.pay", Order.objects.create(), at=timezone.now() - timedelta(days=1)).task

        with self.breaking_at(statement, 1, done=done):
            assert attempt(paying).result == "paid"

        assert effects() == ["paid"]
        assert StepRecord.objects.get().kind == "done"

    @contextmanager
    def breaking_at(self, sql, nth, *, done, again=True):
        seen = []

        def wrapper(execute, asked, *given):
            if sql in asked:
                seen.append(asked)
                if len(seen) == nth:
                    if done:
                        execute(asked, *given)
                    raise lost_connection()
            return execute(asked, *given)

        with connection.execute_wrapper(wrapper):
            yield
        assert again is (len(seen) > nth)


class TestTheSameStepElsewhere:
    """Of an attempt that was thought to be dead, and of its successor, one records a step; the other takes no further one."""

    @pytest.mark.parametrize("step", ["pack", "call"])
    def test_ends_the_attempt_that_comes_late(self, row, step):
        def record():
            StepRecord.objects.create(
                origin=row.pk,
                name=step,
                task_id=row.pk,
                attempt=2,
                kind="done",
                recorded_at=timezone.now(),
                seconds=0,
                digest="",
                code="",
                result="theirs",
            )

        meanwhile.append((step, lambda: elsewhere(record)))

        assert attempt(row) is None
        assert "noted" not in effects()
        assert ("packed" in effects()) is (step == "call")


class TestATransactionOfTheHosts:
    @pytest.mark.parametrize("how", ["autocommit", "begin"])
    def test_that_django_does_not_know_of_refuses_a_step_too(self, row, how):
        class Sly(Timeline):
            entity = "testapp.Order"

            @task(atomic=False)
            def work(self, order: Order) -> None:
                if how == "autocommit":
                    transaction.set_autocommit(False)
                else:
                    connection.cursor().execute("BEGIN")
                try:
                    self.pay()
                finally:
                    transaction.rollback() if how == "autocommit" else connection.cursor().execute("ROLLBACK")
                    transaction.set_autocommit(True)

            @step(atomic=False, once=True)
            def pay(self) -> None:
                raise AssertionError

        with only_timelines(Sly):
            working = schedule("sly.work", Order.objects.create(), at=timezone.now() - timedelta(days=1)).task
            failed = attempt(working)

        assert "pay is called in a transaction" in failed.reason


class TestWhatComesBack:
    def test_is_what_a_later_attempt_will_read(self, row):
        class Numbers(Timeline):
            entity = "testapp.Order"

            @task(atomic=False)
            def add(self, order: Order) -> object:
                return repr(self.give())

            @step(atomic=False)
            def give(self) -> object:
                return {"b": 1e16, "a": -0.0}

        with only_timelines(Numbers):
            adding = schedule("numbers.add", Order.objects.create(), at=timezone.now() - timedelta(days=1)).task
            first = attempt(adding)

        assert first.result == repr(StepRecord.objects.get().result)


class TestTheHostsPatience:
    def test_is_put_back_after_the_record(self, row):
        seen = []

        def look(execute, sql, *given):
            done = execute(sql, *given)
            if "timeline_record_step" in sql:
                with connection.cursor() as cursor:
                    cursor.execute("SHOW lock_timeout")
                    seen.append(cursor.fetchone()[0])
            return done

        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '20ms'")
        try:
            with connection.execute_wrapper(look):
                assert attempt(row).state == State.COMPLETED
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET lock_timeout")

        assert set(seen) == {"20ms"}


class TestAWrapperOfTheHosts:
    def test_may_go_on_to_the_last_result_of_each_statement(self, row):
        """As those of packages do that put statements of their own before ours: what is committed is, hooks and all."""
        called = []

        def to_the_last(execute, *asked):
            done = execute(*asked)
            while done is not None and done.nextset():
                pass
            return done

        meanwhile.append(("pack", lambda: transaction.on_commit(lambda: called.append("packed"))))
        with connection.execute_wrapper(to_the_last):
            tried = attempt(row)

        assert (tried.state, tried.failures, effects()) == (State.COMPLETED, 0, ["called", "noted", "packed"])
        assert called == ["packed"]
        assert StepRecord.objects.get(name="pack").result == "packed"
