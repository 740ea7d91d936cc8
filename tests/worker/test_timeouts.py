"""A handler that takes longer than it may: its attempt fails at that moment, and it is broken off where it can be."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import signal
import threading
import time
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from tests.processes import DEADLINE, wait_for
from tests.testapp.models import Effect, Order
from tests.worker.standing import standing
from tests.worker.test_runner_threads import work_until_done
from timeline import Retry, Timeline, task
from timeline.clocks import story_now
from timeline.engine.groups import Watch, begin_given, run_begun
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.explanation import explain
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.worker import Worker
from timeline.worker.group_runner import supervisor
from timeline.worker.thread_watch import ThreadWatch
from timeline.worker.timed_call import SIGNAL

pytestmark = [  # Two that write.
    pytest.mark.django_db(transaction=True),
    pytest.mark.only_postgresql,
    pytest.mark.usefixtures("_standing"),
]

SHORT = timedelta(seconds=0.3)
LONG = 120.0  # Seconds: what nobody waits for.

seen: list[str] = []
acts: dict[str, object] = {}
again = Retry(base=timedelta(milliseconds=1), jitter=0)


def act(job):
    """Do what the test has for this one, in its first attempt."""
    seen.append(f"{job.task.occurrence} {job.task.attempt}")
    if job.task.attempt == 1 and job.task.occurrence in acts:
        acts[job.task.occurrence]()
    return "well"


class Slow(Timeline):
    entity = "testapp.Order"

    @task(atomic=False, timeout=SHORT, retry=again)
    def plain(self, order):
        return act(self)

    @task(timeout=SHORT, retry=again)
    def atomic(self, order):
        Effect.objects.create(name=str(self.task.attempt))
        return act(self)

    @task(atomic="shared", timeout=SHORT, retry=again)
    def shared(self, order):
        Effect.objects.create(name=f"{self.task.occurrence} {self.task.attempt}")
        return act(self)

    @task(bulk=10, timeout=SHORT, retry=again)
    def bulk(self, orders):
        for order in orders:
            act(Slow(task=self.tasks[order].task))

    @task(atomic=False, timeout=SHORT, retry=again)
    async def side_by_side(self, order):
        seen.append(f"{self.task.occurrence} {self.task.attempt}")
        if self.task.attempt == 1 and self.task.occurrence in acts:
            while len(seen) < 3:
                await asyncio.sleep(0)
            await asyncio.sleep(0.2)  # The others come back.
            let_its_time_be_up()
            await asyncio.sleep(LONG)
        return "well"

    @task(atomic=False, timeout=SHORT, retry=Retry(max_attempts=1))
    def once(self, order):
        return act(self)


@pytest.fixture(autouse=True)
def _slow(settings):
    settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=50)}
    seen.clear()
    acts.clear()
    with only_timelines(Slow):
        yield


def clock():
    return story_now("default")


def due(kind, count=1):
    at = timezone.now() - timedelta(seconds=1)
    return [schedule(f"slow.{kind}", Order.objects.create(), at=at, key=str(number)).task for number in range(count)]


def run_them(rows, clock=clock):
    """Run them on this thread, the main one, watched over."""
    thread_watch = ThreadWatch(Watch(), clock=clock, using="default")
    done = []
    with supervisor.watching(thread_watch):
        for attempts in begin_given(task_ids=[row.pk for row in rows], clock=clock, using="default"):
            thread_watch.line_up(attempts)
            done += run_begun(attempts, clock=clock, using="default", watch=thread_watch)
    return done


def ends(rows):
    found = ScheduledTask.objects.in_bulk([row.pk for row in rows])
    return [(found[row.pk].state, found[row.pk].reason_code, found[row.pk].failures) for row in rows]


def let_its_time_be_up():
    """Time stands still but for this: not for so long that what waits behind it is given back."""
    standing.advance(0.5)


def sleep():
    let_its_time_be_up()
    time.sleep(LONG)


def sleep_whatever_is_raised():
    """Keep what is raised, as a loop that tries again does."""
    let_its_time_be_up()
    give_up = time.monotonic() + LONG
    while time.monotonic() < give_up:
        try:
            time.sleep(LONG)
        except Exception:  # noqa: BLE001, S112 (as hosts do)
            continue


def query():
    let_its_time_be_up()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(120)")


def open_a_transaction():
    with transaction.atomic():
        Effect.objects.create(name="within")
        query()


def leave_a_transaction_open():
    """As one is that is broken off while Django begins or ends it."""
    transaction.atomic().__enter__()
    sleep()


class TestOnTheMainThread:
    @pytest.mark.parametrize(
        "what", [sleep, sleep_whatever_is_raised, query, open_a_transaction, leave_a_transaction_open]
    )
    @pytest.mark.parametrize("kind", ["plain", "atomic"])
    def test_it_is_interrupted_and_the_next_is_run(self, db, kind, what):
        rows = due(kind, 3)
        acts["1"] = what

        run_them(rows)

        assert ends(rows) == [("completed", "done", 0), ("retryable", "timeout", 1), ("completed", "done", 0)]
        failed = ScheduledTask.objects.get(pk=rows[1].pk)
        assert failed.reason == "it took longer than 0:00:00.300000"
        assert "TimedOut" in failed.error
        entry = LogEntry.objects.get(task=failed, reason_code="timeout")
        assert what.__name__ in str(entry.detail)  # Where it was.
        assert Effect.objects.count() == (2 if kind == "atomic" else 0)
        assert not connection.in_atomic_block

    def test_it_is_tried_again(self, db):
        rows = due("atomic")
        acts["0"] = sleep
        run_them(rows)

        run_them(rows)

        assert ends(rows) == [("completed", "done", 1)]
        assert list(Effect.objects.values_list("name", flat=True)) == ["2"]

    def test_it_is_discarded_with_its_last_attempt(self, db):
        rows = due("once")
        acts["0"] = sleep

        run_them(rows)

        assert ends(rows) == [("discarded", "timeout", 1)]

    def test_it_is_told_in_one_line_and_a_few_words(self, db, caplog):
        rows = due("plain")
        acts["0"] = sleep

        run_them(rows)

        assert [record.name for record in caplog.records if record.levelno >= logging.WARNING] == ["timeline.endings"]
        [said] = [
            line
            for line in explain(*ScheduledTask.objects.all(), now=clock(), using="default").splitlines()
            if "ended" in line
        ]
        assert said.endswith("without success: it took longer than 0:00:00.300000.")

    def test_others_of_its_transaction_are_given_back(self, db, patient):
        """What they wrote is undone with it; each is entered again."""
        rows = due("shared", 3)
        acts["1"] = sleep

        run_them(rows)

        assert ends(rows)[:2] == [("retryable", "released", 0), ("retryable", "timeout", 1)]
        run_them(rows)
        assert {end[0] for end in ends(rows)} == {"completed"}
        assert sorted(Effect.objects.values_list("name", flat=True)) == ["0 2", "1 2", "2 1"]

    def test_all_of_one_call_fail_and_none_is_blamed(self, db):
        """Whose fault it was shows when each is run alone."""
        rows = due("bulk", 3)
        acts["1"] = sleep

        run_them(rows)

        assert ends(rows) == [("retryable", "timeout", 0)] * 3

    def test_a_coroutine_is_cancelled_and_no_other(self, db):
        rows = due("side_by_side", 3)
        acts["1"] = True

        run_them(rows)

        assert ends(rows) == [("completed", "done", 0), ("retryable", "timeout", 1), ("completed", "done", 0)]

    def test_it_has_failed_once_the_database_answers_again(self, db, caplog):
        """Also where it came back, and its group is over, before that."""
        rows, failures = due("plain", 3), [OperationalError("not now")]
        acts["1"] = sleep

        def unsteady_clock():
            if failures and threading.current_thread().name == "timeline-supervisor":
                raise failures.pop()
            return clock()

        run_them(rows, unsteady_clock)

        wait_for(standing.passes(lambda: ends(rows)[1] == ("retryable", "timeout", 1)), "the failure")
        assert "not now" in caplog.text
        assert ends(rows)[2] == ("completed", "done", 0)

    def test_what_came_back_in_time_stands(self, db):
        rows = due("plain", 3)

        run_them(rows)

        assert ends(rows) == [("completed", "done", 0)] * 3
        assert signal.getsignal(SIGNAL) == signal.SIG_DFL


class TestACallThatNothingInterrupts:
    def test_has_failed_while_it_still_hangs_and_what_it_comes_back_with_is_dropped(self, db, caplog):
        """In C, without a look at signals; its row tells before it comes back."""
        rows, told = due("atomic"), []
        came_back = threading.Event()

        def wait_in_c():
            # Locked twice, a mutex of C waits for ever, whatever signals come; another thread lets it go.
            mutex, c = ctypes.create_string_buffer(64), ctypes.CDLL(None)
            c.pthread_mutex_lock(mutex)

            def let_go():
                try:
                    wait_for(lambda: ends(rows) == [("retryable", "timeout", 1)], "the failure")
                    told.append(True)
                finally:
                    connection.close()
                    c.pthread_mutex_unlock(mutex)

            threading.Thread(target=let_go).start()
            let_its_time_be_up()
            c.pthread_mutex_lock(mutex)
            came_back.set()

        acts["0"] = wait_in_c

        run_them(rows)

        assert told == [True]
        assert ends(rows) == [("retryable", "timeout", 1)]
        assert not Effect.objects.exists()
        assert str(rows[0].pk) in caplog.text


class TestThreads:
    def test_that_do_not_come_back_are_replaced(self, db, caplog):
        """Two hang for good; the worker goes on with two others, and stops without them."""
        rows = due("plain", 6)
        go_on, both = threading.Event(), threading.Barrier(2, action=let_its_time_be_up)
        acts["0"] = acts["1"] = lambda: (both.wait(DEADLINE), go_on.wait(LONG))

        try:
            work_until_done(Worker("default", threads=2))
        finally:
            go_on.set()

        assert {end[0] for end in ends(rows)} == {"completed"}
        assert [end[2] for end in ends(rows)] == [1, 1, 0, 0, 0, 0]
        assert "is in its place" in caplog.text

    def test_that_do_not_come_back_do_not_keep_a_worker_that_stops(self, db):
        """Its time is up after the worker was told to stop, when nobody is put in its place."""
        rows, go_on, came_back = due("plain"), threading.Event(), []
        worker = Worker("default", threads=2)

        def hang():
            worker.stop()
            let_its_time_be_up()
            go_on.wait(LONG)
            came_back.append(True)

        acts["0"] = hang

        try:
            worker.work()

            assert not came_back
        finally:
            go_on.set()
        wait_for(lambda: ends(rows) == [("retryable", "timeout", 1)], "the failure")

    def test_that_come_back_late_change_nothing(self, db):
        rows = due("atomic")
        is_over = []

        def wait():
            let_its_time_be_up()
            wait_for(lambda: ends(rows) == [("completed", "done", 1)], "the second attempt")
            is_over.append(True)

        acts["0"] = wait

        work_until_done(Worker("default", threads=2))

        wait_for(lambda: is_over, "the end of the first")
        assert ends(rows) == [("completed", "done", 1)]
        assert list(Effect.objects.values_list("name", flat=True)) == ["2"]
        assert LogEntry.objects.filter(task=rows[0], to_state="completed").count() == 1
