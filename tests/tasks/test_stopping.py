"""A Celery worker that is told to stop has handlers to end first: what it has fetched is not kept until then."""

from __future__ import annotations

import signal
from types import SimpleNamespace

import pytest
from celery.worker import state as celery_state
from kombu import Connection

from tests.brokers import received
from tests.processes import DEADLINE, kill, start_process, wait_for
from tests.testapp.models import Order
from timeline.clocks import story_now
from timeline.dispatch.poll import dispatch
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.tasks import shutdown

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]

SOON = 120  # Seconds. The handler hangs for longer, and nobody polls but the test: no message is sent again.


@pytest.fixture
def sender(broker, over):
    return over(broker.url, broker.prefix)


@pytest.fixture
def send(sender):
    """Have a task due and send it: ``send("a note")``; ``send("hang")`` is one whose handler comes back when it is told to."""

    def poll_once(note):
        now = story_now("default")
        task = schedule("crash_case.hang_plain", Order.objects.create(note=note), at=now).task
        dispatch(sender=sender, now=now, using="default")
        task.refresh_from_db()
        assert task.state == "pending" or task.started_at
        return task

    return poll_once


@pytest.fixture
def worker(broker, tmp_path):
    """Start a worker with one handler at a time: ``worker("-P", "threads")``."""
    started = []

    def start(*options):
        command = ["worker", "-Q", broker.queues[0], "-n", f"worker@{broker.prefix}", "-c", "1", "-l", "INFO", *options]
        environment = {"TEST_BROKER_URL": broker.url, "TEST_QUEUE_PREFIX": broker.prefix}
        started.append(start_process(tmp_path, "worker", "celery", "-A", "project", *command, **environment))
        wait_for(lambda: says(tmp_path, " ready."), "a worker that is ready")
        return started[-1]

    yield start
    for process in started:
        kill(process)


@pytest.fixture(autouse=True)
def _stops_no_more():
    yield
    shutdown._stopping.value = False


def says(tmp_path, text):
    return text in (tmp_path / "worker.log").read_text()


def waiting(broker):
    """How many messages wait in the queue."""
    with Connection(broker.url) as connection:
        return connection.channel().queue_declare(broker.queues[0], durable=True, auto_delete=False).message_count


def given_back(broker):
    """Ids of the tasks whose messages wait in the queue."""
    return [task_id for _, _, (_, given, _) in received(broker, broker.queues[0]) for task_id in given["task_ids"]]


def ends_cleanly(process, tmp_path):
    """Its handler was under way all the time; it is let go on."""
    assert process.poll() is None
    (tmp_path / "go").touch()
    assert process.wait(DEADLINE) == 0
    assert sorted(ScheduledTask.objects.values_list("state", "attempt")) == [("completed", 1), ("pending", 0)]


def over_and_in(*cases):
    """Over this broker, in this kind of pool."""
    return pytest.mark.parametrize(("broker", "pool"), cases, indirect=["broker"])


class TestAWorkerThatStops:
    @over_and_in(("redis", "prefork"), ("redis", "threads"), ("rabbitmq", "prefork"))
    def test_gives_back_what_it_has_fetched_while_its_handler_goes_on(self, pool, broker, send, worker, tmp_path):
        process = worker("-P", pool)
        send("hang")
        wait_for((tmp_path / "hangs").exists, "entering the handler")
        fetched = send("fetched")
        wait_for(lambda: not waiting(broker), "fetching it")

        process.send_signal(signal.SIGTERM)
        wait_for(lambda: waiting(broker) == 1, "giving it back", within=SOON)

        assert given_back(broker) == [str(fetched.pk)]
        ends_cleanly(process, tmp_path)
        assert not waiting(broker)

    @over_and_in(("redis", "prefork"), ("rabbitmq", "threads"))
    def test_gives_back_what_is_sent_to_it_meanwhile(self, pool, broker, send, worker, tmp_path):
        process = worker("-P", pool)
        send("hang")
        wait_for((tmp_path / "hangs").exists, "entering the handler")

        process.send_signal(signal.SIGTERM)
        wait_for(lambda: says(tmp_path, "Warm shutdown"), "being told to stop")
        sent = send("sent")
        wait_for(lambda: waiting(broker) == 1, "giving it back", within=SOON)

        assert given_back(broker) == [str(sent.pk)]
        ends_cleanly(process, tmp_path)
        assert not waiting(broker)


class TestGiveBack:
    def test_gives_back_the_others_where_threads_take_some_at_this_moment(self):
        class Request:
            name, acknowledged = "timeline.run", False

            def __init__(self, message):
                self.message = message

        with Connection("memory://") as connection:
            queue = connection.SimpleQueue("fetched")
            for number in range(10):
                queue.put(number)
            requests = [Request(queue.get(block=False)) for _each in range(10)]
            for request in requests[::2]:
                request.message.ack()
            state = SimpleNamespace(reserved_requests=set(requests), active_requests=set())
            consumer = SimpleNamespace(connection=connection, task_consumer=queue.consumer)
            worker = SimpleNamespace(steps=[], state=state, consumer=consumer)

            shutdown.GiveBack(worker).stop(worker)

            assert queue.qsize() == 5
            queue.clear()


class TestIsStopping:
    def test_is_true_for_one_that_is_told_by_a_command_of_celerys(self):
        """Which sends no signal."""
        worker = SimpleNamespace(steps=[], state=celery_state)
        assert not shutdown.is_stopping()

        shutdown.GiveBack(worker).close(worker)

        assert shutdown.is_stopping()
