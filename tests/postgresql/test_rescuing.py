"""What a rescue cannot get hold of costs nobody else anything: neither other tasks nor other pollers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta

import pytest
from django.db import connections, transaction

from tests.postgresql.races import now
from tests.processes import kill, start_process, wait_for
from tests.testapp.models import Order
from tests.testapp.timelines import CrashCase
from timeline import Timeline, after, task
from timeline.clocks import MachineTime
from timeline.dispatch.poll import dispatch
from timeline.dispatch.rescue import rescue
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.start import start
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.timing import EARLIEST

pytestmark = pytest.mark.django_db(transaction=True)


class Job(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def work(self, order): ...


class Nothing:
    """A broker that takes all there is."""

    def connect(self): ...

    def send(self, batch, *, using): ...


@pytest.fixture(autouse=True)
def _only_these(settings):
    settings.TIMELINE = {"MAX_LOST": 1}
    with only_timelines(Job):
        yield


@pytest.fixture
def last():
    """Have a task that lost its last attempt, of a run of an order of its own."""

    def make():
        order = Order.objects.create()
        start(timeline="job", entity=order, key="", params={}, started_at=None, now=now(), using="default")
        row = ScheduledTask.objects.get(entity_id=str(order.pk))
        ScheduledTask.objects.filter(pk=row.pk).update(state=State.ACTIVE, attempt=2, lease_expires_at=EARLIEST)
        return row

    return make


@pytest.fixture
def meanwhile():
    """Call functions in threads of their own; give their results if all are there within two minutes."""
    with ThreadPoolExecutor() as threads:

        def call(*calls):
            def one(call):
                try:
                    return call()
                finally:
                    connections.close_all()

            asked = [threads.submit(one, call) for call in calls]
            _done, late = wait(asked, timeout=120)
            assert not late, "somebody waits for the lock"
            return [each.result() for each in asked]

        yield call


@pytest.fixture
def start_worker(tmp_path):
    """Start a worker with an environment of its own; it is killed at the end."""
    started = []

    def start(name, **environment):
        started.append(start_process(tmp_path, name, "manage", "timeline_worker", "--name", name, **environment))

    yield start
    for process in started:
        kill(process)


def lock_entity(row):
    Order.objects.select_for_update().get(pk=row.entity_id)


def lock_run(row):
    TimelineRun.objects.select_for_update().get(pk=row.run_id)


class TestRescueBesideAHostsTransaction:
    @pytest.mark.parametrize("lock", [lock_entity, lock_run])
    def test_tries_what_is_locked_and_leaves_it(self, last, meanwhile, lock):
        held, other = last(), last()

        with transaction.atomic():
            lock(held)
            [rescued] = meanwhile(lambda: rescue(now=now(), using="default"))

        assert rescued.discarded == [other]

    def test_holds_up_no_poller(self, last, meanwhile, make_task):
        held, other = last(), last()
        due = make_task(task_key="job.work", scheduled_at=now(), entity_label="testapp.order", entity_id="1")

        with transaction.atomic():
            lock_entity(held)
            meanwhile(*[lambda: dispatch(sender=Nothing(), now=now(), using="default")] * 3)

        states = dict(ScheduledTask.objects.values_list("pk", "state"))
        assert states == {held.pk: State.ACTIVE, other.pk: State.DISCARDED, due.pk: State.PENDING}

    def test_makes_room_for_others(self, last, meanwhile):
        """As many are locked as one call takes; the next one takes others."""
        held = [last() for _ in range(3)]
        other = last()

        def twice():
            return [rescue(limit=3, now=now(), using="default").discarded for _ in range(2)]

        with transaction.atomic():
            for row in held:
                lock_entity(row)
            [rescued] = meanwhile(twice)

        assert rescued == [[], [other]]

    def test_ends_it_later(self, last, meanwhile):
        held = last()
        with transaction.atomic():
            lock_entity(held)
            meanwhile(lambda: rescue(now=now(), using="default"))
        ScheduledTask.objects.update(lease_expires_at=EARLIEST)

        assert rescue(now=now(), using="default").discarded == [held]
        assert TimelineRun.objects.get().is_finished


class TestRescueOfWhatAHostHadLocked:
    def test_leaves_the_attempt_to_the_worker_that_runs_it(self, order, start_worker, tmp_path):
        """The worker could not extend the lease; when the lock goes, a rescue is quicker than its next beat."""
        with only_timelines(CrashCase):
            row = schedule("crash_case.plain_write", order, at=now()).task
            start_worker("busy", TEST_LEASE="3")
            wait_for((tmp_path / "entered").exists, "entering the handler")

            with transaction.atomic():
                ScheduledTask.objects.select_for_update().get(pk=row.pk)
                wait_for(lambda: ScheduledTask.objects.given_up().exists(), "the end of its lease")
            rescued = rescue(now=now(), using="default")

            assert rescued == ([], [], [])
            wait_for(is_kept_up(row), "the worker's next beat")
            (tmp_path / "go").touch()
            wait_for(lambda: not ScheduledTask.objects.open().exists(), "the end of its handler")
        row.refresh_from_db()
        assert (row.state, row.attempt) == ("completed", 1)


def is_kept_up(row):
    """Whether its lease lasts for longer than was given to it."""
    lasts = ScheduledTask.objects.filter(pk=row.pk, lease_expires_at__gt=MachineTime(timedelta(seconds=2)))
    return lasts.exists
