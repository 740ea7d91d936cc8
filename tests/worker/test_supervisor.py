"""The supervisor: a handler that does not come back holds up nobody else; each attempt is entered or given back, never both."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from tests.processes import wait_for
from tests.testapp.models import Effect, Order
from tests.worker.standing import standing
from timeline import Timeline, task
from timeline.clocks import story_now
from timeline.engine.groups import Watch, begin_given, give_back, run_begun
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel, schedule
from timeline.testing import only_timelines
from timeline.worker.group_runner import supervisor
from timeline.worker.thread_watch import ThreadWatch

pytestmark = [  # Groups, and two that write.
    pytest.mark.django_db(transaction=True),
    pytest.mark.only_postgresql,
    pytest.mark.usefixtures("_standing"),
]

entered: list[str] = []
undone: list[str] = []
given: list[str] = []


def are_given_back():
    waiting = ScheduledTask.objects.filter(occurrence__in=["2", "3", "4"])
    return set(waiting.values_list("state", "reason_code")) == {("retryable", "released")}


def enter(job):
    """Note it; the first does not come back before the others are given back."""
    entered.append(job.task.occurrence)
    if job.task.occurrence == "0":
        wait_for(standing.passes(are_given_back), "the release of those that wait")


OTHERS = 4  # That the third one waits for.


def note_what_is_given(attempts, **named):
    """Give back, and note which."""
    left = give_back(attempts, **named)
    given.extend(attempt.task.occurrence for attempt in attempts if attempt not in left)
    return left


def on_a_thread(act):
    """Act on a connection of its own."""

    def act_and_close():
        act()
        connection.close()

    thread = threading.Thread(target=act_and_close)
    thread.start()
    thread.join()


def write(job):
    """Write an effect; the third does not come back, the first time, before the others are given back."""
    Effect.objects.create(name=job.task.occurrence)
    entered.append(job.task.occurrence)
    if entered.count("2") == 1 and job.task.occurrence == "2":
        wait_for(standing.passes(lambda: len(given) == OTHERS), "the release of the others")


class Held(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    def plain(self, order):
        enter(self)

    @task()
    def atomic(self, order):
        enter(self)

    @task(atomic="shared")
    def shared(self, order):
        enter(self)

    @task()
    def third_atomic(self, order):
        write(self)

    @task(atomic="shared")
    def third_shared(self, order):
        write(self)

    @task(atomic="shared")
    def shared_at_first(self, order):
        """Share a transaction until the last one fails."""
        if undone:
            enter(self)
        elif self.task.occurrence == "4":
            undone.append("4")
            raise LookupError("undo what all of them did")

    @task(atomic=False)
    def ends_its_thread(self, order):
        if self.task.occurrence == "3":
            raise SystemExit
        entered.append(self.task.occurrence)

    @task(bulk=2)
    def bulk(self, orders):
        for order in orders:
            entered.append(self.tasks[order].task.occurrence)
        if "0" in entered:
            wait_for(standing.passes(are_given_back), "the release of those that wait")

    @task(atomic=False)
    async def side_by_side(self, order):
        await sync_to_async(enter)(self)
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _held(monkeypatch):
    monkeypatch.setattr("timeline.engine.execute.BUDGET", timedelta(hours=1))
    monkeypatch.setattr("timeline.engine.execute_async.SIDE_BY_SIDE", 2)
    entered.clear()
    undone.clear()
    given.clear()
    with only_timelines(Held):
        yield


def clock():
    return story_now("default")


@pytest.fixture
def begun(db):
    """Begin five of a kind together, each of an order of its own; named by their number."""

    def begin(kind):
        at = timezone.now() - timedelta(seconds=1)
        rows = [schedule(f"held.{kind}", Order.objects.create(), at=at, key=str(number)).task for number in range(5)]
        [attempts] = begin_given(task_ids=[row.pk for row in rows], clock=clock, using="default")
        assert len(attempts) == 5
        return attempts

    return begin


def run_them(attempts, **given):
    thread_watch = ThreadWatch(Watch(), clock=clock, using="default", **given)
    with supervisor.watching(thread_watch):
        thread_watch.line_up(attempts)
        return run_begun(attempts, clock=clock, using="default", watch=thread_watch)


class TestAHandlerThatHangs:
    @pytest.mark.parametrize("kind", ["plain", "atomic", "shared", "bulk", "side_by_side"])
    def test_has_those_behind_it_given_back_and_not_entered(self, begun, kind):
        """By another thread while it hangs: due again at once, with no budget touched."""
        attempts = begun(kind)
        together = {"bulk": ["0", "1"], "side_by_side": ["0", "1"]}.get(kind, ["0"])
        if len(together) == 1:
            cancel(attempts[1].task, reason="not this one")  # So that in each case the last three wait.

        done = run_them(attempts)

        assert entered == together
        assert [task.occurrence for task in done] == together
        rows = ScheduledTask.objects.filter(occurrence__in=["2", "3", "4"])
        assert set(rows.values_list("failures", "lost", "attempt")) == {(0, 0, 1)}
        assert all(row.scheduled_at <= clock() for row in rows)
        assert {row.reason for row in rows} == {"another task held up the worker before it got to it"}

    def test_has_others_asked_to_take_what_was_not_begun(self, begun):
        asked = []

        run_them(begun("plain"), hand_on=lambda: asked.append(1))

        assert asked == [1]

    def test_has_those_given_back_that_shared_a_transaction_with_it_before(self, begun):
        """All were entered once, but that was undone, and now they wait for it."""
        run_them(begun("shared_at_first"))

        assert undone
        assert entered == ["0"]
        assert are_given_back()

    @pytest.mark.parametrize("kind", ["third_atomic", "third_shared"])
    def test_has_those_given_back_that_are_in_its_transaction(self, begun, monkeypatch, kind):
        """It is broken off meanwhile, so that nothing stays locked; then the handler is entered in one of its own."""
        monkeypatch.setattr("timeline.worker.thread_watch.give_back", note_what_is_given)

        done = run_them(begun(kind))

        assert entered == ["0", "1", "2", "2"]
        assert sorted(given) == ["0", "1", "3", "4"]
        assert [(task.occurrence, task.state, task.attempt) for task in done] == [("2", "completed", 1)]
        others = ScheduledTask.objects.filter(occurrence__in=given)
        assert set(others.values_list("state", "reason_code", "failures", "lost")) == {("retryable", "released", 0, 0)}
        assert list(Effect.objects.values_list("name", flat=True)) == ["2"]

    @pytest.mark.parametrize("refused", [None, DatabaseError("not allowed")])
    def test_has_those_behind_it_given_back_though_its_transaction_is_not_broken_off(self, begun, monkeypatch, refused):
        """Those before it wait for it; what they did is done once."""

        def refuse(*_transaction, **_using):
            if refused:
                raise refused
            return False

        monkeypatch.setattr("timeline.engine.shared_transaction.break_off", refuse)
        monkeypatch.setattr("timeline.worker.thread_watch.give_back", note_what_is_given)
        monkeypatch.setattr(f"{__name__}.OTHERS", 2)

        done = run_them(begun("third_atomic"))

        assert entered == ["0", "1", "2"]
        assert sorted(given) == ["3", "4"]
        assert [(task.occurrence, task.state) for task in done] == [(number, "completed") for number in "012"]
        assert sorted(Effect.objects.values_list("name", flat=True)) == ["0", "1", "2"]

    def test_ends_its_thread_also_where_its_transaction_is_gone(self, begun, monkeypatch):
        """It is not entered again; those undone with it run when their leases are over."""
        attempts = begun("third_atomic")
        act = ScheduledTask.objects.get(occurrence="2")

        def end(job):
            entered.append(job.task.occurrence)
            if job.task.pk == act.pk:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_backend_pid()")
                    [pid] = cursor.fetchone()
                on_a_thread(lambda: connection.cursor().execute("SELECT pg_terminate_backend(%s)", [pid]))
                raise SystemExit

        monkeypatch.setattr(f"{__name__}.write", end)

        with pytest.raises(SystemExit):
            run_them(attempts)

        assert entered == ["0", "1", "2"]
        assert not Effect.objects.exists()

    def test_has_them_given_back_once_the_database_answers_again(self, begun, monkeypatch, caplog):
        """What was taken away is not entered, and not forgotten."""
        failures = [DatabaseError("not now")]

        def fail_once(*given, **named):
            if failures:
                raise failures.pop()
            return give_back(*given, **named)

        monkeypatch.setattr("timeline.worker.thread_watch.give_back", fail_once)

        run_them(begun("plain"))

        assert entered == ["0"]
        assert "not now" in caplog.text


class TestAHandlerThatEndsItsThread:
    def test_has_what_ended_before_it_recorded(self, begun):
        """The mails of its group are out; in a pool of threads, their process lives on."""
        attempts = begun("ends_its_thread")

        with pytest.raises(SystemExit):
            run_begun(attempts, clock=clock, using="default", watch=Watch())

        assert entered == ["0", "1", "2"]
        rows = ScheduledTask.objects.filter(occurrence__in=entered)
        assert set(rows.values_list("state", flat=True)) == {"completed"}


def slowly(execute, sql, *given):
    """Take longer to read what tasks are about than a handler may hold up others."""
    if sql.startswith("SELECT") and "testapp_order" in sql:
        standing.advance(1.5)
        time.sleep(0.5)  # The supervisor looks meanwhile.
    return execute(sql, *given)


def cut(execute, sql, *given):
    if sql.startswith("SELECT") and "testapp_order" in sql:
        raise OperationalError("the connection is lost")
    return execute(sql, *given)


class TestALook:
    def test_that_takes_long_has_nothing_given_back(self, begun):
        """Else what a slow database is asked about would be begun and given back for ever, and never entered."""
        attempts = begun("plain")[1:]

        with connection.execute_wrapper(slowly):
            done = run_them(attempts)

        assert entered == ["1", "2", "3", "4"]
        assert [task.state for task in done] == ["completed"] * 4

    def test_that_fails_has_all_given_back(self, begun):
        """They need not wait until their leases run out: nobody has entered them."""
        attempts = begun("plain")[1:]

        with connection.execute_wrapper(cut), pytest.raises(OperationalError):
            run_them(attempts)

        wait_for(are_given_back, "the release of what was begun")
        assert entered == []
        assert {row.failures for row in ScheduledTask.objects.filter(occurrence__in=["1", "2", "3", "4"])} == {0}


class TestTheSupervisor:
    def test_goes_on_after_a_connection_that_does_not_close(self, begun, monkeypatch, caplog):
        """Without it, nobody's time would be up."""
        close, failures = BaseDatabaseWrapper.close, [OperationalError("not closed")]

        def fail_once(self):
            if failures and threading.current_thread().name == "timeline-supervisor":
                raise failures.pop()
            close(self)

        monkeypatch.setattr(BaseDatabaseWrapper, "close", fail_once)

        run_them(begun("plain"))

        wait_for(lambda: "not closed" in caplog.text, "the failure")
        assert [thread for thread in threading.enumerate() if thread.name == "timeline-supervisor"]
