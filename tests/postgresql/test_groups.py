"""Groups, and somebody else: who holds a row holds up nobody but its task, and nobody loses to a worker."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from tests.postgresql.races import somebody_waits
from tests.processes import wait_for
from tests.testapp.models import Effect, Order
from timeline import Timeline, at, task
from timeline.clocks import story_now
from timeline.dialects import POSTGRESQL
from timeline.dispatch.poll import stage
from timeline.engine.groups import begin_ready, run, run_begun
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit, schedule, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

entered = threading.Event()
go_on = threading.Event()


class Fleet(Timeline):
    """Its handlers wait once until they may go on, having said that they were entered."""

    entity = "testapp.Order"
    exits = {"order.paid": "paid"}

    @task(at("ships_at"), atomic=False)
    def plain(self, order: Order) -> str:
        wait_once()
        return "plain"

    @task(at("due_on"))
    def saving(self, order: Order) -> str:
        return save(self, [order])

    @task(at("due_on"), atomic="shared")
    def saving_shared(self, order: Order) -> str:
        return save(self, [order])

    @task(at("due_on"), atomic="own")
    def saving_alone(self, order: Order) -> str:
        return save(self, [order])

    @task(at("due_on"), bulk=100)
    def saving_all(self, orders: list[Order]) -> None:
        save(self, orders)


def save(job: Timeline, orders: list[Order]) -> str:
    """Save as a handler does: before or after the request, as the test has it."""
    Effect.objects.create(name="saved")
    for order in orders:
        if "worker first" not in order.note:
            wait_once()
        order.language = "de"
        order.save(update_fields=["language"])
        if "worker first" in order.note:
            wait_once()
    return "saved"


def wait_once():
    if not entered.is_set():
        entered.set()
        assert go_on.wait(120)


@pytest.fixture(autouse=True)
def _fleet(db, monkeypatch):
    monkeypatch.setattr("timeline.engine.execute.BUDGET", timedelta(hours=1))
    entered.clear()
    go_on.clear()
    with only_timelines(Fleet):
        yield


def now():
    return story_now("default")


def tasks_of(task_key, count, **columns):
    """Start runs of so many orders that are due, and give the tasks of this kind."""
    orders = Order.objects.bulk_create([Order(**columns) for _ in range(count)])
    for order in orders:
        start(Fleet, order)
    return list(ScheduledTask.objects.filter(task_key=task_key).order_by("pk"))


def run_them(tasks):
    return run(task_ids=[task.pk for task in tasks], clock=now, using="default")


class TestARowThatSomebodyHolds:
    @pytest.mark.parametrize("held", ["entity", "run", "task"])
    def test_holds_up_its_own_outcome_and_no_neighbours(self, at_once, held):
        """The others are recorded while it is held; its own as soon as it is free."""
        first, second, third = tasks = tasks_of("fleet.plain", 3, ships_at=timezone.now() - timedelta(seconds=1))
        rows = {
            "entity": Order.objects.filter(pk=second.entity_id),
            "run": TimelineRun.objects.filter(pk=second.run_id),
            "task": ScheduledTask.objects.filter(pk=second.pk),
        }[held]

        def hold():
            assert entered.wait(120)
            with transaction.atomic():
                list(rows.select_for_update(of=("self",)))
                go_on.set()
                neighbours = ScheduledTask.objects.filter(pk__in=[first.pk, third.pk], state="completed")
                wait_for(lambda: neighbours.count() == 2, "the neighbours' outcomes")
                return ScheduledTask.objects.get(pk=second.pk).state

        done, state = at_once(lambda: run_them(tasks), hold)

        assert state == "active"
        assert [(row.pk, row.state, row.result) for row in done] == [
            (row.pk, "completed", "plain") for row in (first, second, third)
        ]

    def test_is_passed_over_by_a_start(self, at_once):
        first, second, third = tasks = tasks_of("fleet.plain", 3, ships_at=timezone.now() - timedelta(seconds=1))
        go_on.set()
        go = threading.Event()

        def hold():
            with transaction.atomic():
                list(ScheduledTask.objects.filter(pk=first.pk).select_for_update())
                go.set()
                neighbours = ScheduledTask.objects.filter(pk__in=[second.pk, third.pk], state="completed")
                wait_for(lambda: neighbours.count() == 2, "the neighbours' outcomes")

        done, _held = at_once(lambda: go.wait(120) and run_them(tasks), hold)

        assert [row.state for row in done] == ["completed"] * 3


class TestARequest:
    """It saves its order and emits an exit, in either order, while that order's handler is under way and saves it too."""

    @pytest.mark.parametrize("task_name", ["saving", "saving_alone", "saving_shared", "saving_all"])
    @pytest.mark.parametrize("emit_first", [True, False])
    @pytest.mark.parametrize("worker_first", [True, False])
    def test_is_neither_deadlocked_nor_the_victim(self, at_once, task_name, emit_first, worker_first):
        note = "worker first" if worker_first else ""
        today = timezone.now().date()
        tasks = tasks_of(f"fleet.{task_name}", 3, due_on=today, note=note)
        paid = tasks[0].entity_id

        def request():
            assert entered.wait(120)
            with transaction.atomic():
                order = Order.objects.get(pk=paid)
                order.paid = True
                acts = [lambda: order.save(update_fields=["paid"]), lambda: emit("order.paid", order)]
                for act in acts[::-1] if emit_first else acts:
                    act()
                    go_on.set()
            return "paid"

        def let_the_worker_go():
            """Once the request waits for it."""
            if worker_first:
                wait_for(somebody_waits, "the request's waiting for the row")
                go_on.set()

        done, answer, _none = at_once(lambda: run_them(tasks), request, let_the_worker_go)

        assert answer == "paid"
        assert not isinstance(done, Exception), done
        rows = {row.entity_id: row for row in ScheduledTask.objects.filter(pk__in=[task.pk for task in tasks])}
        expected = "completed" if worker_first else "cancelled"
        assert {key: row.state for key, row in rows.items()} == {
            key: expected if key == paid else "completed" for key in rows
        }
        assert {(row.failures, row.lost, row.attempt) for row in rows.values()} == {(0, 0, 1)}
        assert Order.objects.get(pk=paid).paid
        saved = set(Order.objects.filter(language="de").values_list("pk", flat=True))
        assert saved == {int(key) for key, row in rows.items() if row.state == "completed"}


class TestASharedTransaction:
    @pytest.mark.parametrize("task_name", ["saving", "saving_shared"])
    def test_gives_way_to_a_request_it_would_be_deadlocked_with(self, at_once, task_name):
        """The request holds the second order and waits for the first, which the worker holds, who wants the second next."""
        tasks = tasks_of(f"fleet.{task_name}", 2, due_on=timezone.now().date(), note="worker first")
        first, second = (Order.objects.filter(pk=task.entity_id) for task in tasks)

        def request():
            assert entered.wait(120)
            with transaction.atomic():
                second.update(paid=True)
                first.update(paid=True)
            return "paid"

        def let_the_worker_go():
            """Once the request waits for it: so it would be the first to look for a deadlock."""
            wait_for(somebody_waits, "the request's waiting for the first order")
            go_on.set()

        done, answer, _none = at_once(lambda: run_them(tasks), request, let_the_worker_go)

        assert answer == "paid"
        assert [(row.state, row.result, row.attempt, row.failures) for row in done] == [
            ("completed", "saved", 1, 0)
        ] * 2
        assert Effect.objects.count() == 2
        assert set(Order.objects.values_list("paid", "language")) == {(True, "de")}

    def test_waits_for_no_lock_longer_than_the_site_would(self):
        """Where that is less."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = 7")
            cursor.execute(POSTGRESQL.sql("lock_timeout"), {"most": "1 second"})
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("7ms",)
            cursor.execute("SET LOCAL lock_timeout = 0")
            cursor.execute(POSTGRESQL.sql("lock_timeout"), {"most": "1 second"})
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("1s",)


class TestAHandlerThatMeetsALock:
    """In a transaction of many it does not wait for it, lest the others' locks be held meanwhile."""

    def meet(self, at_once, catch=False):
        """Run three, of which the second wants a row that somebody holds until the others are completed."""
        seen = []

        def work(job, order):
            with connection.cursor() as cursor:
                cursor.execute("SHOW lock_timeout")
                seen.append((order.pk, cursor.fetchone()[0]))
            try:
                with transaction.atomic():
                    Order.objects.filter(pk=order.pk).update(note="told")
            except OperationalError:
                if not catch:
                    raise
            Effect.objects.create(name=str(order.pk))
            return "fine"

        with only_timelines(type("Meeting", (Timeline,), {"entity": "testapp.Order", "work": task()(work)})):
            orders = Order.objects.bulk_create([Order() for _ in range(3)])
            tasks = [schedule("meeting.work", order, at=now() - timedelta(seconds=1)).task for order in orders]
            held = threading.Event()

            def hold():
                with transaction.atomic():
                    list(Order.objects.filter(pk=orders[1].pk).select_for_update())
                    held.set()
                    others = ScheduledTask.objects.filter(pk__in=[tasks[0].pk, tasks[2].pk], state="completed")
                    wait_for(lambda: others.count() == 2, "the neighbours' outcomes")
                    wait_for(somebody_waits, "its waiting for the row, alone")

            done, _held = at_once(lambda: held.wait(120) and run_them(tasks), hold)
        return [order.pk for order in orders], done, seen

    @pytest.mark.parametrize("catch", [False, True])
    def test_waits_for_it_in_a_transaction_of_its_own(self, at_once, catch):
        """Whatever it makes of the error: alone it would have met none."""
        (first, second, third), done, seen = self.meet(at_once, catch)

        assert not isinstance(done, Exception), done
        assert [(row.state, row.result, row.attempt, row.failures) for row in done] == [("completed", "fine", 1, 0)] * 3
        assert seen == [(first, "50ms"), (second, "50ms"), (third, "50ms"), (second, "0")]
        assert Effect.objects.count() == 3
        assert set(Order.objects.values_list("note", flat=True)) == {"told"}


class TestWorkersWithoutABroker:
    def test_start_each_task_once(self, order, at_once):
        go_on.set()
        entered.set()
        for number in range(60):
            schedule("fleet.plain", order, at=now() - timedelta(seconds=1), key=str(number))
        stage(now=now(), using="default")

        def work():
            ran = []
            while begun := begin_ready(task_key="fleet.plain", priority=0, most=7, clock=now, using="default"):
                ran += run_begun(begun, clock=now, using="default")
            return [row.pk for row in ran]

        shares = at_once(work, work, work, work)

        ran = [pk for share in shares for pk in share]
        assert len(ran) == len(set(ran)) == 60
        assert set(ScheduledTask.objects.values_list("state", "attempt")) == {("completed", 1)}
