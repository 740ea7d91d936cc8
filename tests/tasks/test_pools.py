"""Celery's pools: ``prefork``, ``threads``, ``solo``, ``gevent``. What ends a handler there, or limits its time."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from django.db import connection

from tests.processes import DEADLINE, kill, start_process, wait_for
from tests.testapp.models import Effect, Order
from timeline.clocks import story_now
from timeline.dispatch.poll import dispatch
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]

REDIS = pytest.mark.parametrize("broker", ["redis"], indirect=True)
GEVENT = pytest.param("gevent", marks=pytest.mark.needs("gevent"))
EACH = 20
EACH_MESSAGE, OURS = 3, 3  # Connections: of handlers, beside them, of the heartbeat; and of the test.
SOON = 30  # Seconds. Nothing here waits for a lease to run out.


@pytest.fixture
def sender(broker, over):
    return over(broker.url, broker.prefix)


@pytest.fixture
def send(sender):
    """Have tasks of a kind due and send them: ``send("plain", "", "leave")``, one for each note."""

    def poll_once(kind, *notes):
        now = story_now("default")
        made = [schedule(f"pool_case.{kind}", Order.objects.create(note=note), at=now).task for note in notes]
        dispatch(sender=sender, now=now, using="default")
        return [task.pk for task in made]

    return poll_once


@pytest.fixture
def worker(broker, tmp_path):
    """Start a worker of a pool, which waits for what is sent: ``worker("threads", …)``."""
    started = []

    def start(pool, *options, queues=2, ready=True):
        command = [
            "worker",
            "-P",
            pool,
            "-Q",
            ",".join(broker.queues[:queues]),
            "-n",
            f"worker@{broker.prefix}",
            *options,
        ]
        environment = {"TEST_BROKER_URL": broker.url, "TEST_QUEUE_PREFIX": broker.prefix, "TEST_POLL_INTERVAL": "0.5"}
        started.append(
            start_process(tmp_path, "worker", "celery", "-A", "project", *command, "-l", "INFO", **environment)
        )
        if ready:
            wait_for(lambda: says(tmp_path, " ready."), "a worker that is ready")
        return started[-1]

    yield start
    for process in started:
        kill(process)


def says(tmp_path, text):
    return text in (tmp_path / "worker.log").read_text()


def rows(keys):
    there = ScheduledTask.objects.in_bulk(keys)
    return [(there[key].state, there[key].reason_code, there[key].failures, there[key].attempt) for key in keys]


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def connections_there():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return cursor.fetchone()[0]


DONE = ("completed", "done", 0, 1)


@REDIS
class TestAPool:
    @pytest.mark.parametrize("pool", ["prefork", "threads", "solo", GEVENT])
    def test_runs_each_task_once(self, pool, worker, send, tmp_path):
        worker(pool, "-c", "4", queues=1 if pool == "gevent" else 2)
        kinds = ["atomic", "shared", "plain", *(["coroutine"] if pool != "gevent" else [])]

        keys = [key for kind in kinds for key in send(kind, *[""] * EACH)]

        wait_for(lambda: not ScheduledTask.objects.exclude(state="completed").exists(), "an end of all", within=SOON)
        assert set(rows(keys)) == {DONE}
        assert sorted(Effect.objects.values_list("name", flat=True)) == sorted(map(str, keys))
        assert not says(tmp_path, "SynchronousOnlyOperation")

    @pytest.mark.parametrize("pool", ["threads", GEVENT])
    def test_keeps_no_more_connections_than_it_runs_messages(self, pool, worker, send):
        worker(pool, "-c", "4", queues=1)

        for _message in range(20):
            keys = send("plain", "")
            wait_for(lambda keys=keys: rows(keys) == [DONE], "an end", within=SOON)

        assert connections_there() <= 4 * EACH_MESSAGE + OURS


@REDIS
class TestAHandlerThatEndsItsProcess:
    @pytest.mark.parametrize("kind", ["plain", "coroutine"])
    @pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
    def test_fails_and_a_pool_has_another(self, pool, kind, worker, send, tmp_path):
        process = worker(pool, "-c", "1")
        [first, last], [failed] = send(kind, "", ""), send(kind, "leave")

        wait_for(lambda: rows([failed])[0][0] == "retryable", "a failure", within=SOON)

        assert rows([first, failed, last]) == [DONE, ("retryable", "error", 1, 1), DONE]
        assert says(tmp_path, f"SystemExit: 3 (task {failed})")
        if pool == "solo":  # The worker is the process that runs handlers.
            process.wait(SOON)
            return
        [later] = send(kind, "")
        wait_for(lambda: rows([later]) == [DONE], "an end of what comes later", within=SOON)


@REDIS
class TestAProcessOfThePoolThatIsToldToEnd:
    @pytest.mark.parametrize("kind", ["plain", "coroutine"])
    def test_leaves_its_task_as_a_lost_worker_does(self, kind, worker, send, tmp_path):
        """As where all processes get SIGTERM: billiard raises SystemExit in the handler, which is no fault of its own."""
        process = worker("prefork", "-c", "1")
        [key] = send(kind, "hang")
        wait_for(Effect.objects.exists, "entering the handler", within=SOON)
        [child] = children_of(process.pid)

        os.kill(child, signal.SIGTERM)
        wait_for(lambda: child not in children_of(process.pid), "its end", within=SOON)

        assert rows([key]) == [("active", "", 0, 1)]


@REDIS
class TestCelerysSoftTimeLimit:
    @pytest.mark.parametrize("kind", ["plain", "coroutine"])
    def test_is_the_timeout_of_who_has_taken_so_long(self, kind, worker, send, tmp_path):
        worker("prefork", "-c", "1", "--soft-time-limit", "2")
        keys = send(kind, "", "hang", "", "")

        wait_for(lambda: rows(keys)[1][0] == "retryable", "a failure", within=SOON)
        wait_for(lambda: [row[0] for row in rows(keys)].count("completed") == 3, "an end of the others", within=SOON)

        assert rows(keys)[1] == ("retryable", "timeout", 1, 1)
        row = ScheduledTask.objects.get(pk=keys[1])
        assert "SoftTimeLimitExceeded" in row.error
        assert [Effect.objects.filter(name=str(key)).count() for key in keys] == [1] * 4
        assert {row[:3] for row in rows(keys[:1] + keys[2:])} == {DONE[:3]}


@REDIS
@pytest.mark.needs("gevent")
class TestCoroutinesInAGreenPool:
    def test_are_refused_when_the_worker_starts(self, worker, broker, tmp_path):
        process = worker("gevent", ready=False)

        assert process.wait(DEADLINE) != 0
        assert says(tmp_path, "pool_case.coroutine")
        assert says(tmp_path, "-P threads")
