"""An event against a rest, a deadline, an exit: many rounds, and as if one came after the other. No wake-up is lost."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from datetime import timedelta
from functools import partial

import pytest
from django.db import connections, transaction

from tests.postgresql import conftest as postgresql
from tests.postgresql.races import rounds, wait_for_a_waiter
from tests.testapp.models import Order
from timeline import Timeline, after, task, wait_for
from timeline.engine.attempts import begin_attempts
from timeline.engine.execute import call
from timeline.engine.finalize import record_all
from timeline.engine.groups import run
from timeline.engine.precheck import look
from timeline.lifecycle import State
from timeline.models import Event, ScheduledTask, StepKind, StepRecord, TimelineRun
from timeline.operations.emit import emit
from timeline.operations.start import start
from timeline.store.transition import Write
from timeline.testing import only_timelines

at_once = postgresql.at_once  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = int(os.environ.get("RACE_ROUNDS", "60"))
WITHIN = timedelta(minutes=10)


class Asking(Timeline):
    """Waits for a code."""

    entity = "testapp.Order"
    exits = {"order.closed": "closed"}

    @task(after(), atomic=False)
    def ask(self, order: Order) -> str:
        given = self.wait_for("code.given", within=WITHIN)
        return str(given.pk) if given else "nothing"


@pytest.fixture(autouse=True)
def _asking():
    with only_timelines(Asking):
        yield


def asked(now, timeline="asking"):
    order = Order.objects.create(ships_at=now)
    start(timeline=timeline, entity=order, key="", params={}, started_at=None, now=now, using="default")
    return order, ScheduledTask.objects.get(entity_id=str(order.pk))


def given(order, now, name="code.given"):
    return emit(name=name, entity=order, key="", payload={}, actor="", occurred_at=None, now=now, using="default")


def begun(row, now):
    """Entered, and about to rest."""
    [attempt] = begin_attempts([row.pk], token=None, worker="w", now=now, using="default")
    look([attempt], now=now, using="default")
    return attempt, call(attempt)


def rested(attempt, write, now):
    return record_all([(attempt, write)], now=now, using="default")


def ran(row, now):
    return run(task_ids=[row.pk], clock=lambda: now, using="default")


def with_a_lead(number, act):
    """One of two sides begins a little earlier, by turns; where one is always first, there are more rounds, with more of it."""
    return _after(number % 5, number, act)


def with_a_lag(number, act):
    """The other side."""
    return _after(4 - number % 5, number, act)


def _after(steps, number, act):
    def led():
        time.sleep(steps * (0.0006 if number < ROUNDS else 0.02))
        return act()

    return led


class TestAnEventAgainstARest:
    def test_loses_no_wake_up(self, at_once, now):
        """Whoever comes first, the task is due at once, and gets the event."""
        ways: Counter[str] = Counter()
        for number in rounds(ROUNDS, lambda: len(ways) == 2):
            order, row = asked(now)
            attempt, write = begun(row, now)
            later = now + timedelta(minutes=1)

            done = at_once(
                with_a_lead(number, partial(given, order, later)),
                with_a_lag(number, partial(rested, attempt, write, later)),
            )

            assert not [error for error in done if isinstance(error, Exception)]
            row.refresh_from_db()
            assert (row.state, row.scheduled_at) in [(State.AVAILABLE, later), (State.RETRYABLE, later)]
            ways[row.state] += 1
            [end] = ran(row, later + timedelta(seconds=1))
            assert end.result == str(done[0].event.pk)
        assert len(ways) == 2, ways

    def test_waits_for_the_event_that_has_the_lock(self, now):
        """What is not committed yet holds the entity's lock: the rest comes after it, and sees it."""
        order, row = asked(now)
        attempt, write = begun(row, now)
        rests = threading.Thread(target=lambda: (rested(attempt, write, now), connections.close_all()))

        with transaction.atomic():
            given(order, now + timedelta(seconds=1))
            rests.start()
            time.sleep(0.2)
            assert rests.is_alive()
        rests.join(120)

        row.refresh_from_db()
        assert (row.state, row.scheduled_at) == (State.RETRYABLE, now)


class TestAnEventAgainstTheDeadline:
    def test_counts_if_it_was_recorded_before(self, at_once, now):
        """Whoever is faster: what was recorded before the deadline ends the wait, if anybody can know of it."""
        ways: Counter[str] = Counter()
        for number in rounds(ROUNDS, lambda: bool(ways["came"])):
            order, row = asked(now)
            [rest] = ran(row, now)
            until = rest.scheduled_at

            done = at_once(
                with_a_lead(number, partial(given, order, until - timedelta(seconds=1))),
                with_a_lag(number, partial(ran, row, until)),
            )

            assert not [error for error in done if isinstance(error, Exception)]
            row.refresh_from_db()
            if row.state != State.COMPLETED:  # Somebody had the lock: it looks again.
                [row] = ran(row, until + timedelta(seconds=2))
            record = StepRecord.objects.get(task_id=row.pk)
            assert (record.kind, record.result or "nothing") == (StepKind.OVER, row.result)
            ways[row.result if row.result == "nothing" else "came"] += 1
        assert ways["came"]

    def test_is_waited_for_while_it_is_not_committed(self, now):
        """That nothing came is said under the entity's lock only: who cannot have that looks again a second later."""
        order, row = asked(now)
        [rest] = ran(row, now)
        until = rest.scheduled_at
        [attempt] = begin_attempts([row.pk], token=None, worker="w", now=until, using="default")
        look([attempt], now=until, using="default")
        written: list[Write] = []

        def there():
            written.append(call(attempt))
            connections.close_all()

        with transaction.atomic():
            came = given(order, until - timedelta(seconds=1))
            looks = threading.Thread(target=there)
            looks.start()
            looks.join(120)
        [write] = written
        assert write.scheduled_at - until < timedelta(seconds=3)
        rested(attempt, write, until)

        [end] = ran(row, until + timedelta(seconds=3))
        assert end.result == str(came.event.pk)


class TestADeclaredWait:
    @pytest.mark.parametrize("atomic", [True, False])
    def test_looks_again_where_it_cannot_have_the_lock(self, now, atomic):
        """Its deadline has come, and an event is not committed that was recorded before."""

        class Settling(Timeline):
            entity = "testapp.Order"

            @task(wait_for("code.given", within=WITHIN), atomic=atomic)
            def settle(self, order: Order) -> str:
                return str(self.awaited.pk) if self.awaited else "nothing"

        with only_timelines(Settling):
            order, row = asked(now, "settling")
            until = row.scheduled_at
            [attempt] = begin_attempts([row.pk], token=None, worker="w", now=until, using="default")
            look([attempt], now=until, using="default")

            def there():
                with transaction.atomic():
                    rested(attempt, call(attempt), until)
                connections.close_all()

            with transaction.atomic():
                came = given(order, until - timedelta(seconds=1))
                waits = threading.Thread(target=there)
                waits.start()
                wait_for_a_waiter(waits)
            waits.join(120)
            row.refresh_from_db()
            assert (row.state, row.scheduled_at) == (State.RETRYABLE, until)

            [end] = ran(row, until + timedelta(seconds=2))
            assert end.result == str(came.event.pk)


class TestAnExitAgainstARest:
    def test_leaves_nothing_waiting_in_a_run_that_has_ended(self, at_once, now):
        ways: Counter[str] = Counter()
        for number in rounds(ROUNDS, lambda: len(ways) == 2):
            order, row = asked(now)
            attempt, write = begun(row, now)

            done = at_once(
                with_a_lead(number, partial(given, order, now, "order.closed")),
                with_a_lag(number, partial(rested, attempt, write, now)),
            )

            assert not [error for error in done if isinstance(error, Exception)]
            row.refresh_from_db()
            assert (row.state, row.reason_code) == (State.CANCELLED, "exit")
            ways["rested" if done[1] else "lost"] += 1
        assert not TimelineRun.objects.filter(ended_at=None).exists()
        assert len(ways) == 2, ways


class TestManyEvents:
    def test_of_one_entity_wake_once(self, at_once, now):
        order, row = asked(now)
        ran(row, now)

        at_once(*[lambda: given(order, now + timedelta(minutes=1))] * 4)

        row.refresh_from_db()
        assert row.state == State.AVAILABLE
        assert Event.objects.count() == 4
        [end] = ran(row, now + timedelta(minutes=1))
        assert end.result == str(Event.objects.order_by("recorded_at", "pk").first().pk)
