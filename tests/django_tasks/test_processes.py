"""Functions in processes: workers, one that is killed, and Celery."""

from __future__ import annotations

import signal

import pytest

from tests.brokers import Broker
from tests.django_tasks.shop import tasks
from tests.processes import kill, let_be_dead, start_process, wait_for
from tests.testapp.models import Effect
from timeline.models import LogEntry, ScheduledTask

pytestmark = pytest.mark.django_db(transaction=True)


class TestKilledWorker:
    def test_has_its_task_run_again_by_the_next(self, tmp_path, workers):
        """The result says who ran it, and that it was tried twice."""
        result = tasks.enter.enqueue("ada")
        first = workers("first")
        wait_for((tmp_path / "entered").exists, "entering the function")
        result.refresh()
        assert (result.status, result.attempts) == ("RUNNING", 1)

        first.send_signal(signal.SIGKILL)
        first.wait()
        (tmp_path / "go").touch()
        let_be_dead()
        workers("second")

        wait_for(lambda: not ScheduledTask.objects.open().exists(), "the second worker's run")
        result.refresh()
        assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", "ada", 2)
        assert [name.partition(":")[0] for name in result.worker_ids] == ["first", "second"]
        assert Effect.objects.count() == 2


class TestTwoWorkers:
    def test_enter_each_function_once(self, tmp_path, workers):
        (tmp_path / "go").touch()
        results = [tasks.enter.enqueue(f"{number}") for number in range(40)]
        results.append(tasks.enter.using(queue_name="mail").enqueue("by mail"))

        workers("one")
        workers("two")

        wait_for(lambda: not ScheduledTask.objects.open().exists(), "the end of all")
        assert sorted(Effect.objects.values_list("name", flat=True)) == sorted(result.args[0] for result in results)
        assert LogEntry.objects.filter(to_state="active").count() == len(results)


class TestCelery:
    def test_runs_them_too(self, tmp_path, broker: Broker):
        (tmp_path / "go").touch()
        results = [tasks.enter.enqueue("ada"), tasks.enter.using(queue_name="mail").enqueue("bob")]
        environment = {"TEST_BROKER_URL": broker.url, "TEST_QUEUE_PREFIX": broker.prefix}
        queues = f"{broker.prefix}.default,{broker.prefix}.mail"
        celery = ("celery", "-A", "project", "worker", "-Q", queues, "-c", "1", "--without-gossip")
        started = [
            start_process(tmp_path, "celery", *celery, **environment),
            start_process(tmp_path, "poll", "manage", "timeline_poll", **environment),
        ]
        try:
            wait_for(lambda: not ScheduledTask.objects.open().exists(), "the end of all")
        finally:
            for process in started:
                kill(process)

        for result in results:
            result.refresh()
        assert [result.return_value for result in results] == ["ada", "bob"]
