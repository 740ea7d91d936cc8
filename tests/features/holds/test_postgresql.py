"""A hold against a claim and a start: once it is committed, nothing of it is begun that is entered."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connections, transaction

from tests.postgresql import conftest as postgresql
from tests.postgresql.races import rounds
from tests.testapp.models import Effect, Order
from timeline import Timeline, task
from timeline.dispatch.claim import claim
from timeline.engine.execute import BUDGET
from timeline.engine.groups import begin_ready, run_begun
from timeline.features.holds import release as holds_release
from timeline.features.holds.release import release, release_due
from timeline.features.holds.verbs import hold
from timeline.lifecycle import State
from timeline.models import Hold, ScheduledTask, Scope
from timeline.shortcuts import schedule
from timeline.store.task_key_stats import ready_kinds
from timeline.testing import only_timelines

at_once = postgresql.at_once  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = int(os.environ.get("RACE_ROUNDS", "40"))
SLACK = 10  # Seconds: between its look and its handler, a thread may have to wait for others of this machine.
HOUR = timedelta(hours=1)
FAR = datetime(2999, 1, 1, tzinfo=UTC)


class Noting(Timeline):
    """Writes down when it was entered."""

    entity = "testapp.Order"

    @task()
    def note(self, order: Order) -> None:
        Effect.objects.create(name=str(time.time()))


@pytest.fixture(autouse=True)
def _noting():
    with only_timelines(Noting):
        yield


def row_of(order, now):
    return schedule("noting.note", order, at=now).task


def put_on_hold(order, now, number):
    scopes = [
        {"scope": Scope.ENTITY, "entity": order},
        {"scope": Scope.TASK, "target": "noting.note"},
        {"scope": Scope.EVERYTHING},
    ]
    made = hold(reason="x", now=now, using="default", **scopes[number % len(scopes)])
    return made, time.time()


def began_what_is_ready(now):
    ready = ready_kinds(["noting.note"], using="default").get("noting.note")
    if ready is None:
        return []
    attempts = begin_ready(
        task_key="noting.note",
        priority=ready.priority,
        most=10,
        since=ready.place,
        parts=ready.parts,
        clock=lambda: now,
        using="default",
    )
    return run_begun(attempts, clock=lambda: now, using="default")


class TestAHoldAgainstAStart:
    def test_lets_nothing_be_entered_once_it_is_committed(self, at_once, now):
        """A handler may be entered within the time of a look, and not later; what is not entered rests or waits."""
        ways: Counter[str] = Counter()
        for number in rounds(ROUNDS, lambda: len(ways) > 1):
            order = Order.objects.create()
            row = row_of(order, now)

            def lead(number=number, order=order):
                time.sleep(number % 8 * (0.0008 if number < ROUNDS else 0.02))
                return put_on_hold(order, now, number)

            (made, committed), _ran = at_once(lead, lambda: began_what_is_ready(now))

            entered = [float(name) for name in Effect.objects.values_list("name", flat=True)]
            assert all(at <= committed + BUDGET.total_seconds() + SLACK for at in entered), (committed, entered)
            row.refresh_from_db()
            assert row.state == (State.COMPLETED if entered else row.state)
            assert row.state in (State.COMPLETED, State.AVAILABLE, State.RETRYABLE)
            assert began_what_is_ready(now) == []
            assert claim(now=now, using="default") == []
            assert Effect.objects.count() == len(entered)
            ways[row.state] += 1
            Effect.objects.all().delete()
            Hold.objects.filter(pk=made.pk).delete()
            ScheduledTask.objects.filter(pk=row.pk).update(task_key="noting.gone")

        assert len(ways) > 1, ways  # Both sides came first now and then.


class TestAReleaseBesideOthers:
    def test_waits_for_nobody_and_goes_on_when_they_let_go(self, at_once, now):
        """What somebody has locked is left for a later poll, which does the rest."""
        orders = [Order.objects.create() for _ in range(5)]
        for order in orders:
            schedule("noting.note", order, at=now + HOUR)
        ScheduledTask.objects.update(created_at=now - HOUR)
        made = hold(scope=Scope.EVERYTHING, then="shift", reason="x", now=now, using="default")
        release(hold_id=made.pk, now=now + HOUR, using="default")

        held, released = threading.Event(), threading.Event()

        def meanwhile():
            assert held.wait(120)
            release_due(now=now + HOUR, using="default")
            released.set()

        def holding():
            with transaction.atomic():
                Order.objects.select_for_update().get(pk=orders[2].pk)
                held.set()
                return released.wait(120)

        assert at_once(meanwhile, holding) == [None, True]
        assert Hold.objects.get().settled in (0, 1, 2)
        assert Hold.objects.open().exists()
        release_due(now=now + HOUR, using="default")
        assert Hold.objects.get().settled == 5
        assert set(ScheduledTask.objects.open().values_list("scheduled_at", flat=True)) == {now + 2 * HOUR}

    def test_of_two_holds_counts_their_time_once_whoever_polls(self, at_once, now, monkeypatch):
        """Polls see to both at the same time, batch by batch."""
        monkeypatch.setattr(holds_release, "BATCH", 4)
        for order in Order.objects.bulk_create([Order() for _ in range(200)]):
            schedule("noting.note", order, at=FAR)
        ScheduledTask.objects.update(created_at=now - HOUR)
        held = [
            hold(then="shift", reason="x", now=now, using="default", **what)
            for what in ({"scope": Scope.EVERYTHING}, {"scope": Scope.TASK, "target": "noting.note"})
        ]
        for made in held:
            release(hold_id=made.pk, now=now + HOUR, using="default")

        def poll():
            while Hold.objects.open().exists():
                release_due(now=now + HOUR, using="default")

        at_once(poll, poll, poll)

        assert set(ScheduledTask.objects.open().values_list("scheduled_at", flat=True)) == {FAR + HOUR}

    def test_waits_for_nobody_who_is_releasing_it(self, now):
        """Whose transaction is still open. Its time has come meanwhile; polls go on with what is not on hold."""
        made = hold(scope=Scope.TASK, target="noting.note", until=now + HOUR, reason="x", now=now, using="default")
        polled, released = threading.Event(), threading.Event()

        def releasing():
            with transaction.atomic():
                release(hold_id=made.pk, actor="ada", now=now, using="default")
                released.set()
                waited_in_vain = not polled.wait(120)
            connections.close_all()
            return waited_in_vain

        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(releasing)
            released.wait(120)
            release_due(now=now + 2 * HOUR, using="default")
            polled.set()

        assert not other.result()
        assert Hold.objects.get().released_by == "ada"
        assert Hold.objects.get().lifted_at == now

    def test_is_done_once_by_two_polls_at_once(self, at_once, now):
        order = Order.objects.create()
        for number in range(50):
            schedule("noting.note", order, at=now + HOUR, key=str(number))
        ScheduledTask.objects.update(created_at=now - HOUR)
        made = hold(scope=Scope.ENTITY, entity=order, then="shift", reason="x", now=now, using="default")
        release(hold_id=made.pk, now=now + HOUR, using="default")

        done = at_once(*[lambda: release_due(now=now + HOUR, using="default")] * 2)

        assert sorted(done) == [0, 50]
        assert set(ScheduledTask.objects.open().values_list("scheduled_at", flat=True)) == {now + 2 * HOUR}
