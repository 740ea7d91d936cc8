"""The heartbeat: keeps up the leases of what is being run, and of nothing else."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.processes import wait_for
from tests.readonly import demote
from tests.testapp.models import Order
from timeline import RetryAfter, Timeline, task
from timeline.clocks import MachineTime, story_now
from timeline.dispatch.rescue import rescue
from timeline.dispatch.worker_signs import extend_leases
from timeline.engine.groups import run
from timeline.lifecycle import State
from timeline.models import ScheduledTask, Sign
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.timing import EARLIEST
from timeline.worker.heartbeat import Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heartbeat(settings):
    settings.TIMELINE = {"LEASE": timedelta(milliseconds=300)}
    with Heartbeat("default", stopping=bool) as beat:
        yield beat


@pytest.fixture
def active(make_task):
    """A row that a worker holds, its lease about to run out."""
    task = make_task(state=State.ACTIVE, attempt=1)
    ScheduledTask.objects.update(lease_expires_at=MachineTime(timedelta(milliseconds=200)))
    return task


class Twice(Timeline):
    """Fails at once and is tried again while its neighbour still runs."""

    entity = "testapp.Order"
    failed, neighbour_go_on = threading.Event(), threading.Event()
    second, second_go_on = threading.Event(), threading.Event()

    @task()
    def work(self, order):
        if order.note == "neighbour":
            Twice.failed.set()
            assert Twice.neighbour_go_on.wait(120)
        elif self.task.attempt == 1:
            raise RetryAfter(timedelta(0))
        else:
            Twice.second.set()
            assert Twice.second_go_on.wait(120)


def is_given_up():
    return ScheduledTask.objects.given_up().exists()


def wait_for_beats():
    """Two of them: each makes the lease longer."""
    for _ in range(2):
        ends_at = ScheduledTask.objects.get().lease_expires_at
        wait_for(ScheduledTask.objects.filter(lease_expires_at__gt=ends_at).exists, "a beat")


class TestTheDatabasesClock:
    def test_takes_nothing_from_a_living_worker_when_it_is_set_forward(self, make_task, settings):
        """All leases are over at once, long before the next time that they would have been extended."""
        settings.TIMELINE = {"LEASE": timedelta(seconds=12), "SILENCE": timedelta(seconds=20)}
        row = make_task(state=State.ACTIVE, attempt=1, worker="host:1:ab12")

        def is_extended():
            assert not rescue(now=timezone.now(), using="default").retried
            return ScheduledTask.objects.filter(lease_expires_at__gt=MachineTime(timedelta(seconds=9))).exists()

        with Heartbeat("default", stopping=bool, worker=row.worker) as watch:
            watch.give_sign()
            watch.entered(row)
            ScheduledTask.objects.update(lease_expires_at=EARLIEST)
            wait_for(is_extended, "the next extension")

        assert ScheduledTask.objects.get().attempt == 1


class TestHeartbeat:
    def test_keeps_up_the_lease_of_what_it_holds(self, heartbeat, active):
        heartbeat.entered(active)

        wait_for_beats()

    def test_lets_the_lease_of_what_was_dropped_run_out(self, heartbeat, active):
        heartbeat.entered(active)
        heartbeat.left(active)

        wait_for(is_given_up, "the end of its lease")

    def test_leaves_another_attempt_alone(self, heartbeat, active):
        active.attempt = 7
        heartbeat.entered(active)

        wait_for(is_given_up, "the end of its lease")

    def test_goes_on_after_a_beat_that_failed(self, heartbeat, active, caplog):
        """On SQLite a handler's transaction keeps the one writer; the next beat makes up for it."""
        heartbeat.entered(active)

        with transaction.atomic():
            ScheduledTask.objects.update(worker="busy")
            time.sleep(0.4)

        wait_for_beats()

    def test_goes_on_after_an_error_that_is_not_the_databases(self, heartbeat, active, monkeypatch, caplog):
        """No file left to wait with, say: a heart that stands still has what lives given up."""
        failures = [OSError("too many open files")]

        def fail_once(*given, **named):
            if failures:
                raise failures.pop()
            return extend_leases(*given, **named)

        monkeypatch.setattr("timeline.worker.heartbeat.extend_leases", fail_once)
        heartbeat.entered(active)

        wait_for(lambda: "too many open files" in caplog.text, "the failure")
        wait_for_beats()


@pytest.mark.only_postgresql
class TestAHeartbeatWhoseServerTakesNoWritesAnyMore:
    @pytest.fixture
    def _kept(self, monkeypatch):
        """Connections are kept from one use to the next, as in README."""
        monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 600)

    @pytest.mark.usefixtures("_kept")
    def test_goes_on_with_another_connection(self, request, active, monkeypatch, caplog):
        """After a failover the connection that it keeps leads to the server that was the primary before, and is answered."""
        to_come = [demote]

        def demote_once(*given, **named):
            if to_come:
                to_come.pop()()
            return extend_leases(*given, **named)

        monkeypatch.setattr("timeline.worker.heartbeat.extend_leases", demote_once)
        request.getfixturevalue("heartbeat").entered(active)

        wait_for(lambda: "read-only" in caplog.text, "the failure")
        wait_for_beats()


@pytest.mark.only_postgresql  # Groups, and two that write.
class TestATaskThatIsTriedAgainBesideItsFirstGroup:
    def test_has_its_lease_kept_up_when_that_group_ends(self, settings, monkeypatch):
        """The group lets go of the attempt it had, and of no later one."""
        settings.TIMELINE = {"LEASE": timedelta(milliseconds=300)}
        monkeypatch.setattr("timeline.engine.execute.BUDGET", timedelta(0))  # Its outcome is written first.
        at = timezone.now() - timedelta(seconds=1)
        with only_timelines(Twice), Heartbeat("default", stopping=bool) as watch:
            rows = [schedule("twice.work", Order.objects.create(note=note), at=at).task for note in ("", "neighbour")]

            def run_both(ids):
                run(task_ids=ids, clock=lambda: story_now("default"), using="default", watch=watch)
                connection.close()

            group = threading.Thread(target=run_both, args=[[row.pk for row in rows]])
            group.start()
            assert Twice.failed.wait(120)
            second = threading.Thread(target=run_both, args=[[rows[0].pk]])
            second.start()
            assert Twice.second.wait(120)

            Twice.neighbour_go_on.set()
            group.join()
            ends_at = ScheduledTask.objects.get(pk=rows[0].pk).lease_expires_at

            try:
                later = ScheduledTask.objects.filter(pk=rows[0].pk, lease_expires_at__gt=ends_at + timedelta(seconds=1))
                wait_for(later.exists, "the beats of the second attempt")
            finally:
                Twice.second_go_on.set()
                second.join()
        assert ScheduledTask.objects.get(pk=rows[0].pk).state == "completed"


class TestSigns:
    """A worker is heard of as long as it holds anything."""

    @pytest.fixture
    def attentive(self, settings):
        settings.TIMELINE = {"SILENCE": timedelta(milliseconds=200)}

    def heard(self):
        before = Sign.objects.values_list("seen_at", flat=True).first()
        return lambda: Sign.objects.filter(seen_at__gt=before or EARLIEST).exists()

    def test_are_given_of_its_worker_before_anything_is_begun(self, attentive):
        with Heartbeat("default", stopping=bool, worker="host:1:ab12") as heartbeat:
            heartbeat.give_sign()

        assert Sign.objects.get().worker == "host:1:ab12"

    def test_are_given_of_its_worker_while_it_is_at_work(self, attentive):
        """Something may have been begun that is not held yet."""
        with Heartbeat("default", stopping=bool, worker="host:1:ab12") as heartbeat, heartbeat.at_work():
            wait_for(self.heard(), "a sign")
            wait_for(self.heard(), "another one")

        assert Sign.objects.get().worker == "host:1:ab12"

    def test_are_given_of_who_holds_an_attempt(self, attentive, make_task):
        """Who keeps an outcome that cannot be written need not know whose message it came with."""
        task = make_task(state=State.ACTIVE, attempt=1, worker="host:2:cd34")
        with Heartbeat("default", stopping=bool) as heartbeat:
            heartbeat.entered(task)
            wait_for(self.heard(), "a sign")
            wait_for(self.heard(), "another one")

        assert Sign.objects.get().worker == "host:2:cd34"

    def test_are_given_of_nobody_else(self, heartbeat, active):
        heartbeat.entered(active)

        time.sleep(0.3)

        assert not Sign.objects.exists()
