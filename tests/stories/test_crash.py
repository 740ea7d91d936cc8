"""A worker is killed in the middle of a handler; another one carries on."""

from __future__ import annotations

import re
import signal
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.processes import DEADLINE, let_be_dead, wait_for
from tests.testapp.models import Effect, Order
from timeline.conf import Settings
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
        let_be_dead()
        workers("second")

        wait_for(lambda: not ScheduledTask.objects.open().exists(), "the second worker's run")
        task.refresh_from_db()
        assert (task.state, task.attempt, task.lost, task.failures) == ("completed", 2, 0, 0)
        assert task.worker.startswith("second:")
        assert Effect.objects.count() == (1 if task_name == "atomic_write" else 2)
        assert [(entry.to_state, entry.reason_code) for entry in task.log.order_by("seq")] == [
            ("active", ""),
            ("retryable", "worker_lost"),
            ("available", ""),
            ("active", ""),
            ("completed", "done"),
        ]
        assert re.search("worker first:.... was not heard of until its lease ran out", explain(task))
        assert task.result == {"lost": True}


@pytest.mark.django_db(transaction=True)
class TestFrozenWorker:
    @pytest.mark.parametrize(
        ("task_name", "effects"),
        [
            pytest.param("atomic_write", 1, marks=pytest.mark.only_postgresql),
            ("plain_write", 2),
        ],  # SQLite has one writer.
    )
    def test_records_nothing_when_it_wakes_up_after_another_one_ran_its_task(
        self, task_name, effects, tmp_path, workers
    ):
        """What an atomic handler wrote in it is rolled back; what a plain one did is done twice."""
        task = schedule(f"crash_case.{task_name}", Order.objects.create(), at=timezone.now()).task
        frozen = workers("frozen")
        wait_for((tmp_path / "entered").exists, "entering the handler")
        frozen.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        let_be_dead()
        workers("heir")
        wait_for(lambda: not ScheduledTask.objects.open().exists(), "the heir's run")
        told = list(task.log.order_by("seq").values_list("seq", "to_state", "attempt"))

        frozen.send_signal(signal.SIGCONT)
        wait_for(lambda: "not ours any more" in (tmp_path / "frozen.log").read_text(), "what the frozen one says of it")

        task.refresh_from_db()
        assert (task.state, task.attempt, task.result) == ("completed", 2, {"lost": True})
        assert task.worker.startswith("heir:")
        assert list(task.log.order_by("seq").values_list("seq", "to_state", "attempt")) == told
        assert Effect.objects.count() == effects


@pytest.mark.django_db(transaction=True)
class TestKilledWorkerByDefault:
    @pytest.fixture(autouse=True)
    def _as_by_default(self, monkeypatch):
        """Their silence gives the dead away, and nothing else does: their leases are far from over."""
        monkeypatch.setenv("TEST_SILENCE", str(Settings().SILENCE.total_seconds()))
        monkeypatch.setenv("TEST_LEASE", "3600")

    def test_has_its_task_run_again_when_it_has_been_silent_for_as_long_as_by_default(self, tmp_path, workers):
        """Nothing is helped along: neither leases nor clocks. The worker that lives keeps what it runs meanwhile."""
        orders = [Order.objects.create() for _ in range(2)]
        kept = schedule("crash_case.plain_write", orders[0], at=timezone.now()).task
        workers("living")
        wait_for((tmp_path / "entered").exists, "entering the first handler")
        (tmp_path / "entered").unlink()
        lost = schedule("crash_case.plain_write", orders[1], at=timezone.now()).task
        victim = workers("victim")
        wait_for((tmp_path / "entered").exists, "entering the second handler")
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        workers("heir")

        wait_for(lambda: lost.log.filter(to_state="active").count() == 2, "its second attempt")
        (tmp_path / "go").touch()

        wait_for(lambda: not ScheduledTask.objects.open().exists(), "the end of both")
        kept.refresh_from_db()
        assert (kept.state, kept.attempt) == ("completed", 1)


@pytest.mark.django_db(transaction=True)
class TestPoison:
    """One task kills every worker that touches it, in the middle of a hundred of its kind."""

    @pytest.fixture
    def survive(self, workers):
        """Start workers, one after the other, until nothing is open; give how many died."""

        def work():
            deaths = 0
            while ScheduledTask.objects.open().exists():
                process = workers(f"worker {deaths}")
                wait_for(
                    lambda process=process: process.poll() is not None or not ScheduledTask.objects.open().exists(),
                    "the worker's end, or that of all tasks",
                )
                if process.poll() is not None:
                    deaths += 1
                    let_be_dead()
            return deaths

        return work

    @pytest.fixture
    def due(self):
        """A hundred tasks of a kind and the poison among them: ``due("note")``."""

        def declare(task_name):
            at = timezone.now() - timedelta(minutes=1)
            orders = Order.objects.bulk_create([Order(note="poison" if number == 50 else "") for number in range(101)])
            tasks = [
                schedule(f"crash_case.{task_name}", order, at=at + timedelta(milliseconds=number)).task
                for number, order in enumerate(orders)
            ]
            return tasks.pop(50), [str(task.pk) for task in tasks]

        return declare

    def assert_it_alone_paid(self, poison, neighbours, deaths):
        poison.refresh_from_db()
        assert (poison.state, poison.reason_code, poison.attempt, poison.lost) == ("discarded", "worker_lost", 4, 3)
        assert deaths == 4
        rows = ScheduledTask.objects.filter(pk__in=neighbours)
        assert set(rows.values_list("state", "failures", "lost")) == {("completed", 0, 0)}
        assert set(rows.values_list("attempt", flat=True)) <= {1, 2}

    @pytest.mark.parametrize("task_name", ["fast_atomic", "fast_shared"])
    def test_costs_atomic_neighbours_nothing(self, due, survive, task_name):
        """No budget, and no effect: each wrote its own exactly once."""
        poison, neighbours = due(task_name)

        deaths = survive()

        self.assert_it_alone_paid(poison, neighbours, deaths)
        assert sorted(Effect.objects.values_list("name", flat=True)) == sorted(neighbours)

    @pytest.mark.parametrize("task_name", ["fast_plain", "brief_plain"])
    def test_has_plain_neighbours_of_its_group_repeated_at_most(self, task_name, due, survive, tmp_path):
        """Those whose outcomes were not written yet when it struck; each of them once more."""
        poison, neighbours = due(task_name)

        deaths = survive()

        self.assert_it_alone_paid(poison, neighbours, deaths)
        entered = Counter((tmp_path / "notes").read_text().split())
        assert entered.pop(str(poison.pk)) == 4
        assert set(entered) == set(neighbours)
        again = {key for key, count in entered.items() if count > 1}
        assert {entered[key] for key in again} <= {2}
        in_its_group = ScheduledTask.objects.filter(pk__in=neighbours, attempt=2).values_list("pk", flat=True)
        assert again <= {str(key) for key in in_its_group}


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
        assert "stopped. Tasks run: 1." in (tmp_path / "only.log").read_text()


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
