"""While handlers run, the outcomes before are recorded and the next group is begun, on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from time import monotonic

import pytest
from django.db import OperationalError, connections
from django.utils import timezone

from tests.processes import wait_for
from tests.testapp.models import Order
from timeline import Timeline, task
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.dispatch.worker_signs import keep_paces
from timeline.engine import execute
from timeline.engine.groups import BUDGET
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel, schedule
from timeline.testing import only_timelines
from timeline.worker import Worker
from timeline.worker.batch import run_batch
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.process import PaceOfKinds
from timeline.worker.threads import SideThread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]

EACH = 0.004  # Seconds that a handler takes.
GROUP = 9  # Of these in the time that a group has when outcomes are recorded on the side thread.

entered: list[str] = []
acts: dict[str, object] = {}


class Brief(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    def note(self, order) -> str:
        """Takes a while; does what the test has for this one."""
        entered.append(self.task.occurrence)
        time.sleep(EACH)
        if act := acts.get(self.task.occurrence):
            act(self, order)
        return threading.current_thread().name

    @task()
    def atomic(self, order) -> None:
        entered.append(self.task.occurrence)

    @task(atomic=False)
    def sign(self, order) -> None:
        """Saves its entity whole."""
        time.sleep(EACH)
        order.note += f"{self.task.occurrence} "
        order.save()


@pytest.fixture(autouse=True)
def _brief():
    entered.clear()
    acts.clear()
    with only_timelines(Brief):
        yield


@pytest.fixture
def side_thread():
    with SideThread("default") as beside:
        yield beside


@pytest.fixture
def pace():
    """Of a process that has run many of them."""
    known = PaceOfKinds()
    for name in ("note", "atomic", "sign"):
        known.took(f"brief.{name}", 100, 100 * EACH)
    return known


@pytest.fixture
def batch(db):
    """Claim so many tasks in one message, named by their number, each of an order of its own or of the one given for it."""

    def claimed(task_key, count, of=lambda number: Order.objects.create()):
        now = timezone.now()
        for number in range(count):
            at = now - timedelta(seconds=60) + timedelta(milliseconds=number)
            schedule(task_key, of(number), at=at, key=str(number))
        keep_paces({task_key: 0.0}, using="default")
        stage(now=now, using="default")
        [made] = claim(now=now, using="default")
        return made

    return claimed


@pytest.fixture
def work(side_thread, pace):
    """Work a batch off: gives how many were run."""

    def run_it(made, stopping=bool):
        with Heartbeat("default", stopping, pace) as watch:
            return run_batch(made, watch=watch, using="default", worker="w", side_thread=side_thread)

    return run_it


def states():
    return Counter(ScheduledTask.objects.values_list("state", flat=True))


def named(*numbers):
    return [str(number) for number in numbers]


def refreshed(scheduled):
    return ScheduledTask.objects.get(pk=scheduled.pk)


def row(number):
    return ScheduledTask.objects.get(occurrence=str(number))


class TestGroupsOneAfterTheOther:
    def test_run_each_task_once_on_the_workers_own_thread(self, batch, work):
        made = batch("brief.note", 40)

        assert work(made) == 40

        assert entered == named(*range(40))
        done = ScheduledTask.objects.values_list("state", "attempt", "result")
        assert set(done) == {("completed", 1, threading.current_thread().name)}

    def test_are_begun_before_the_one_before_is_over(self, batch, work):
        """The first one stays in its handler until then; none is recorded yet."""
        made = batch("brief.note", 2 * GROUP)
        acts["0"] = lambda job, order: wait_for(lambda: states() == {"active": 2 * GROUP}, "a beginning")

        assert work(made) == 2 * GROUP

    def test_are_recorded_while_the_next_one_runs(self, batch, work):
        made = batch("brief.note", 2 * GROUP)
        acts[str(2 * GROUP - 1)] = lambda job, order: wait_for(lambda: row(0).state == "completed", "the outcomes")

        work(made)

        assert states() == {"completed": 2 * GROUP}

    def test_never_have_more_than_a_budget_unrecorded(self, batch, work, monkeypatch):
        """While the outcomes of the first group are held up, the next one goes no further than they may lag behind."""
        made = batch("brief.note", 3 * GROUP)
        go_on, real, counted = threading.Event(), execute.record_outcomes, []

        def held_up(outcomes, setting):
            go_on.wait(120)
            return real(outcomes, setting)

        def release():
            time.sleep(0.5)
            counted.append(len(entered))
            go_on.set()

        monkeypatch.setattr(execute, "record_outcomes", held_up)
        releasing = threading.Thread(target=release)
        releasing.start()

        assert work(made) == 3 * GROUP

        releasing.join()
        assert counted[0] <= BUDGET.total_seconds() / EACH + 1
        assert states() == {"completed": 3 * GROUP}

    def test_may_be_of_one_where_more_would_fit(self, batch, work):
        made, later = batch("brief.note", 1), schedule("brief.note", Order.objects.create(), at=timezone.now())
        acts["0"] = lambda job, order: wait_for(lambda: refreshed(later).state == "active", "a beginning")
        stage(now=timezone.now(), using="default")

        assert work(made) == 2

    def test_do_without_where_handlers_hold_a_transaction(self, batch, work, side_thread, monkeypatch):
        made = batch("brief.atomic", 20)
        with monkeypatch.context() as patched:
            patched.setattr(side_thread, "submit", None)

            assert work(made) == 20


class TestWhatIsBegunAhead:
    def test_is_not_entered_if_it_is_called_off_while_it_waits(self, batch, work):
        made = batch("brief.note", 2 * GROUP)
        acts["0"] = lambda job, order: (time.sleep(0.2), cancel(row(GROUP + 1), reason="no"))

        work(made)

        assert str(GROUP + 1) not in entered
        assert row(GROUP + 1).state == "cancelled"
        assert states() == {"completed": 2 * GROUP - 1, "cancelled": 1}

    def test_is_not_entered_if_its_entity_is_gone(self, batch, work):
        made = batch("brief.note", 2 * GROUP)
        Order.objects.filter(pk=row(GROUP).entity_id)._raw_delete("default")  # No signal says so.

        assert work(made) == 2 * GROUP

        assert str(GROUP) not in entered
        assert (row(GROUP).state, row(GROUP).reason_code) == ("cancelled", "entity_gone")

    def test_is_given_its_entity_as_the_ones_before_left_it(self, batch, work):
        """One order is named early in each group and late: what is written of it last must not be overwritten."""
        order = Order.objects.create()
        shared = {place + GROUP * group for group in range(4) for place in (1, GROUP - 2)}
        made = batch("brief.sign", 4 * GROUP, lambda number: order if number in shared else Order.objects.create())

        work(made)

        order.refresh_from_db()
        assert sorted(order.note.split(), key=int) == named(*sorted(shared))

    def test_is_given_back_when_the_worker_stops(self, batch, work):
        """What was not begun of the message stays as it was."""
        made, begun = batch("brief.note", 3 * GROUP), {}
        stop = threading.Event()

        def end(job, order):
            wait_for(lambda: row(GROUP).state == "active", "a beginning")
            begun.update(states())
            stop.set()

        acts["0"] = end

        work(made, stop.is_set)

        assert entered == named(0)
        released = ScheduledTask.objects.filter(reason_code="released")
        assert set(released.values_list("state", "failures", "lost")) == {("retryable", 0, 0)}
        assert GROUP < begun["active"] <= 2 * GROUP
        assert states() == {"completed": 1, "retryable": begun["active"] - 1, "pending": begun["pending"]}

    def test_is_given_back_when_the_worker_dies_of_an_error(self, batch, work):
        """What was not begun of the message, if the pace was slow, stays as it was."""
        made, begun = batch("brief.note", 2 * GROUP), []

        def later():
            return list(ScheduledTask.objects.order_by("pk").values_list("state", flat=True)[GROUP:])

        def die(job, order):
            wait_for(lambda: row(GROUP).state == "active", "a beginning")
            begun.extend(later())
            raise KeyboardInterrupt

        acts["1"] = die

        with pytest.raises(KeyboardInterrupt):
            work(made)

        assert set(begun) <= {"active", "pending"}
        assert later() == [{"active": "retryable"}.get(state, state) for state in begun]

    def test_is_no_task_that_was_tried_before(self, batch, work):
        """It would pay for others: an attempt that is lost counts from the second one on."""
        made = batch("brief.note", 2 * GROUP)
        ScheduledTask.objects.filter(occurrence=str(2 * GROUP - 1)).update(attempt=1)
        seen = []
        acts[str(2 * GROUP - 3)] = lambda job, order: (time.sleep(0.1), seen.append(row(2 * GROUP - 1).state))

        assert work(made) == 2 * GROUP

        assert seen == ["pending"]
        assert (row(2 * GROUP - 1).state, row(2 * GROUP - 1).attempt) == ("completed", 2)

    def test_is_no_single_task_that_was_tried_before(self, batch, work, pace):
        """Nor where it makes up a message's last group by itself."""
        made = batch("brief.note", GROUP + 1)
        ScheduledTask.objects.filter(occurrence=str(GROUP)).update(attempt=1)
        seen = []
        acts[str(GROUP - 3)] = lambda job, order: (time.sleep(0.1), seen.append(row(GROUP).state))

        assert work(made) == GROUP + 1

        assert (seen, row(GROUP).attempt) == (["pending"], 2)


class TestARecordThatFails:
    def test_is_raised_where_the_worker_sees_it(self, batch, work, monkeypatch):
        made = batch("brief.note", 2 * GROUP)

        def fail(outcomes, setting):
            raise OperationalError("gone")

        monkeypatch.setattr(execute, "record_outcomes", fail)

        with pytest.raises(OperationalError, match="gone"):
            work(made)


class TestAWorkerWithoutABroker:
    def test_runs_each_task_once(self, pace):
        """Kinds that leave time and kinds that do not, and some that were tried before."""
        now = timezone.now()
        for number in range(60):
            name = "atomic" if number % 10 == 0 else "note"
            at = now - timedelta(seconds=60) + timedelta(milliseconds=number)
            schedule(f"brief.{name}", Order.objects.create(), at=at, key=str(number))
        ScheduledTask.objects.filter(occurrence__in=named(5, 25, 40)).update(attempt=1)
        worker = Worker("default", "w")
        worker._heartbeat.pace = pace
        begin = monotonic()

        def work():
            with ExitStack() as stack:
                stack.callback(connections["default"].close)
                worker.work()

        thread = threading.Thread(target=work)
        thread.start()
        wait_for(lambda: states() == {"completed": 60}, "all of them")
        worker.stop()
        thread.join(120)

        assert sorted(entered, key=int) == named(*range(60))
        assert worker.ran == 60
        assert monotonic() - begin >= 54 * EACH
        assert Counter(ScheduledTask.objects.values_list("attempt", flat=True)) == {1: 57, 2: 3}

    def test_counts_what_it_took_on(self, side_thread, pace):
        for number in range(30):
            schedule("brief.note", Order.objects.create(), at=timezone.now(), key=str(number))
        worker = Worker("default", "w")
        worker._heartbeat.pace, worker._side_thread = pace, side_thread

        taken = 0
        while last := worker.poll():
            taken += last

        assert (taken, worker.ran) == (30, 30)
