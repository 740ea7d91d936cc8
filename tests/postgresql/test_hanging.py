"""A handler that hangs, in processes: its neighbours are run by a worker that has nothing to do, and nobody is lost."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.brokers import Broker, answers
from tests.processes import DEADLINE, kill, start_process, wait_for
from tests.testapp.models import Effect, Order
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import schedule

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE, BEHIND = 120, 57  # Those before it show that the kind is fast, so that groups are large.


@pytest.fixture
def due(db):
    """Have one that hangs due among many that do not: ``due("hang_plain")`` gives its row."""

    def make(kind):
        at = timezone.now() - timedelta(seconds=10)
        orders = Order.objects.bulk_create(
            [Order(note="hang" if number == BEFORE else "") for number in range(BEFORE + 1 + BEHIND)]
        )
        rows = [
            schedule(f"crash_case.{kind}", order, at=at + timedelta(milliseconds=number)).task
            for number, order in enumerate(orders)
        ]
        return rows[BEFORE]

    return make


@pytest.fixture
def over_redis(tmp_path):
    """Start processes of Celery over Redis."""
    if not answers("redis"):
        pytest.skip("no Redis answers; start one on loopback")
    broker, started = Broker("redis"), []

    def run(name, *command):
        environment = {"TEST_BROKER_URL": broker.url, "TEST_QUEUE_PREFIX": broker.prefix}
        command = [part.replace("PREFIX", broker.prefix) for part in command]
        started.append(start_process(tmp_path, name, *command, **environment))

    yield run
    for process in started:
        kill(process)
    broker.remove()


def are_done_while_it_hangs(hanging, tmp_path):
    """Wait until all others are completed while it hangs; then let it come back."""
    others = ScheduledTask.objects.exclude(pk=hanging.pk)
    try:
        wait_for(lambda: not others.open().exists(), "the end of its neighbours")
        assert ScheduledTask.objects.get(pk=hanging.pk).state == "active"
    finally:
        (tmp_path / "go").touch()
    wait_for(lambda: not ScheduledTask.objects.open().exists(), "its own end")
    assert set(ScheduledTask.objects.values_list("state", "failures", "lost")) == {("completed", 0, 0)}


class TestTheNeighboursOfAHandlerThatHangs:
    @pytest.mark.parametrize("kind", ["hang_plain", "hang_atomic", "hang_own", "hang_shared"])
    def test_are_run_by_an_idle_worker(self, due, workers, tmp_path, kind):
        hanging = due(kind)
        workers("first")
        wait_for((tmp_path / "hangs").exists, "its entry")
        workers("idle")

        are_done_while_it_hangs(hanging, tmp_path)

    def test_are_run_by_an_idle_thread(self, due, workers, tmp_path):
        hanging = due("hang_plain")
        workers("both", "--threads", "2")
        wait_for((tmp_path / "hangs").exists, "its entry")

        are_done_while_it_hangs(hanging, tmp_path)

    @pytest.mark.parametrize("pool", ["prefork", "threads"])
    def test_are_run_by_an_idle_child(self, due, over_redis, tmp_path, pool):
        hanging = due("hang_plain")
        over_redis("worker", "celery", "-A", "project", "worker", "-Q", "PREFIX.default", "-c", "2", "-P", pool)
        over_redis("poller", "manage", "timeline_poll")
        wait_for((tmp_path / "hangs").exists, "its entry")

        are_done_while_it_hangs(hanging, tmp_path)


class TestAHandlerWhoseTimeIsUp:
    """It fails and is broken off; its second attempt is run by the same process, which goes on."""

    @pytest.mark.parametrize("options", [[], ["--threads", "2"]], ids=["one thread", "two threads"])
    def test_is_run_again_by_its_worker(self, due, workers, tmp_path, options):
        hanging = due("hang_for_a_time")
        worker = workers("worker", *options)

        self.is_run_again(hanging, tmp_path)

        worker.send_signal(signal.SIGTERM)
        assert worker.wait(DEADLINE) == 0

    @pytest.mark.parametrize("pool", ["prefork", "solo"])
    def test_is_run_again_by_its_child(self, due, over_redis, tmp_path, pool):
        hanging = due("hang_for_a_time")
        over_redis("worker", "celery", "-A", "project", "worker", "-Q", "PREFIX.default", "-c", "1", "-P", pool)
        over_redis("poller", "manage", "timeline_poll")

        self.is_run_again(hanging, tmp_path)

    def is_run_again(self, hanging, tmp_path):
        wait_for(lambda: not ScheduledTask.objects.open().exists(), "the end of all")
        hanging.refresh_from_db()
        assert (hanging.state, hanging.failures, hanging.lost) == ("completed", 1, 0)
        reasons = LogEntry.objects.filter(task=hanging, to_state="retryable").values_list("reason_code", flat=True)
        assert list(reasons) == ["timeout"]
        assert Effect.objects.count() == ScheduledTask.objects.count()
        assert Effect.objects.filter(name__startswith=str(hanging.pk)).get().name == f"{hanging.pk} {hanging.attempt}"
        assert not (tmp_path / "go").exists()
