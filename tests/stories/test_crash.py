"""A worker is killed in the middle of a handler; another one carries on."""

from __future__ import annotations

import signal
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.processes import DEADLINE, wait_for
from tests.testapp.models import Effect, Order
from timeline.clocks import MachineTime
from timeline.models import ScheduledTask
from timeline.shortcuts import explain, schedule


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("task_name", ["atomic_write", "plain_write"])
class TestKilledWorker:
    def test_has_its_task_run_again_by_the_next(self, task_name, tmp_path, workers):
        """The log says so, and an atomic handler's write is there exactly once; what a plain one did may be there twice."""
        order = Order.objects.create()
        task = schedule(f"crash_case.{task_name}", order, at=timezone.now() - timedelta(seconds=1)).task

        first = workers("first")
        wait_for((tmp_path / "entered").exists, "entering the handler")
        first.send_signal(signal.SIGKILL)
        first.wait()
        (tmp_path / "go").touch()
        # The lease runs out: a minute passes for the database.
        ScheduledTask.objects.filter(pk=task.pk).update(lease_expires_at=MachineTime(timedelta(seconds=-1)))
        workers("second")

        wait_for(lambda: not ScheduledTask.objects.open().exists(), "the second worker's run")
        task.refresh_from_db()
        assert (task.state, task.attempt, task.lost, task.failures, task.worker) == ("completed", 2, 0, 0, "second")
        assert Effect.objects.count() == (1 if task_name == "atomic_write" else 2)
        assert [(entry.to_state, entry.reason_code) for entry in task.log.order_by("seq")] == [
            ("active", ""),
            ("retryable", "worker_lost"),
            ("available", ""),
            ("active", ""),
            ("completed", "done"),
        ]
        assert "worker first was not heard of until its lease ran out" in explain(task)
        assert task.result == {"lost": True}


@pytest.mark.django_db(transaction=True)
class TestStoppedWorker:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_finishes_what_it_has_entered_and_ends_cleanly(self, number, tmp_path, workers):
        order = Order.objects.create()
        tasks = [schedule("crash_case.plain_write", order, at=timezone.now()).task for _ in range(2)]

        process = workers("only")
        wait_for((tmp_path / "entered").exists, "entering the handler")
        process.send_signal(number)
        (tmp_path / "go").touch()

        assert process.wait(DEADLINE) == 0
        states = sorted(
            ScheduledTask.objects.filter(pk__in=[task.pk for task in tasks]).values_list("state", flat=True)
        )
        assert states == ["available", "completed"]
        assert "stopped; it ran 1 tasks" in (tmp_path / "only.log").read_text()


@pytest.mark.django_db(transaction=True)
class TestSlowHandler:
    def test_holds_no_transaction_while_people_sign_up(self, tmp_path, workers, client):
        """While a plain handler waits for the outside, writers are not kept waiting, and none sees 'database is locked'."""
        order = Order.objects.create()
        schedule("crash_case.plain_write", order, at=timezone.now())
        workers("slow")
        wait_for((tmp_path / "entered").exists, "entering the handler")

        answers = [
            client.post("/", {"email": f"p{number}@example.com", "website": "p.example.com"}).status_code
            for number in range(20)
        ]

        assert answers == [302] * 20
        assert ScheduledTask.objects.filter(task_key="crash_case.plain_write").get().state == "active"
        assert ScheduledTask.objects.filter(task_key="trial.remind").count() == 20
        (tmp_path / "go").touch()
        wait_for(
            lambda: not ScheduledTask.objects.filter(task_key__startswith="crash").open().exists(), "the handler's end"
        )
