"""An event of another entity against a rest, a deadline, an exit: no wake-up is lost, and nobody waits for anybody."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connections, transaction

from tests.faults.planted.surgery import Change, Fault, planted
from tests.features.waits.test_postgresql import (
    ROUNDS,
    WITHIN,
    asked,
    begun,
    given,
    ran,
    rested,
    with_a_lag,
    with_a_lead,
)
from tests.postgresql import conftest as postgresql
from tests.postgresql.races import rounds, wait_for_a_waiter
from tests.testapp.models import Employee, Order
from timeline import Timeline, after, task, wait_for
from timeline.dispatch.poll import stage
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind, StepRecord, Wake
from timeline.operations.start import start
from timeline.testing import only_timelines

at_once = postgresql.at_once  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)

OTHER: list[Any] = []


class Asking(Timeline):
    """Waits for a code that comes to another order."""

    entity = "testapp.Order"
    exits = {"order.closed": "closed"}

    @task(after(), atomic=False)
    def ask(self, order: Order) -> str:
        got = self.wait_for("code.given", within=WITHIN, of=OTHER[-1])
        return str(got.pk) if got else "nothing"


@pytest.fixture(autouse=True)
def _asking():
    with only_timelines(Asking):
        yield


def asked_of_another(now):
    order, row = asked(now)
    OTHER[:] = [Order.objects.create(ships_at=now)]
    return order, OTHER[0], row


def waked(row, now):
    """What polls make of it, and then its run."""
    stage(now=now, using="default")
    row.refresh_from_db()
    assert row.state == State.AVAILABLE, row.scheduled_at
    [end] = ran(row, now)
    return end


class TestAnEventAgainstARest:
    def test_loses_no_wake_up(self, at_once, now):
        """Whoever comes first, the task is due soon, by a note or because it looks again, and gets the event."""
        ways: Counter[str] = Counter()
        for number in rounds(ROUNDS, lambda: len(ways) == 2):
            _order, other, row = asked_of_another(now)
            attempt, write = begun(row, now)
            later = now + timedelta(minutes=1)

            done = at_once(
                with_a_lead(number, partial(given, other, later)),
                with_a_lag(number, partial(rested, attempt, write, later)),
            )

            assert not [error for error in done if isinstance(error, Exception)]
            row.refresh_from_db()
            ways["noted" if Wake.objects.exists() else "seen"] += 1
            end = waked(row, later + timedelta(seconds=2))
            assert end.result == str(done[0].event.pk)
            assert not Wake.objects.exists()
        assert len(ways) == 2, ways

    def test_has_it_look_again_where_the_other_is_locked(self, now):
        """What is not committed yet may be what it waits for: it goes to rest for a moment only, and waits for nobody."""
        _order, other, row = asked_of_another(now)
        attempt, write = begun(row, now)

        with transaction.atomic():
            came = given(other, now)
            rests = threading.Thread(target=lambda: (rested(attempt, write, now), connections.close_all()))
            rests.start()
            rests.join(120)
            assert not rests.is_alive()

        row.refresh_from_db()
        assert (row.state, row.scheduled_at) == (State.RETRYABLE, now + timedelta(seconds=1))
        assert waked(row, now + timedelta(seconds=1)).result == str(came.event.pk)

    @pytest.mark.parametrize("by", ["account", "badge", "employee"])
    def test_sees_that_it_is_locked_by_whichever_name(self, now, by):
        """A child of two parents, each with a key of its own: who emits by one of them locks the rows of that one only."""
        employee = Employee.objects.create()
        named = {"account": employee.account_ptr, "badge": employee.badge_ptr, "employee": employee}
        _order, row = asked(now)
        OTHER[:] = [employee]
        attempt, write = begun(row, now)

        with transaction.atomic():
            came = given(named[by], now)
            rests = threading.Thread(target=lambda: (rested(attempt, write, now), connections.close_all()))
            rests.start()
            rests.join(120)

        row.refresh_from_db()
        assert (row.state, row.scheduled_at) == (State.RETRYABLE, now + timedelta(seconds=1))
        assert waked(row, now + timedelta(seconds=1)).result == str(came.event.pk)


class TestAnEventAgainstTheDeadline:
    def test_counts_if_it_was_recorded_before(self, at_once, now):
        ways: Counter[str] = Counter()
        for number in rounds(ROUNDS, lambda: bool(ways["came"])):
            _order, other, row = asked_of_another(now)
            [rest] = ran(row, now)
            until = rest.scheduled_at

            done = at_once(
                with_a_lead(number, partial(given, other, until - timedelta(seconds=1))),
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
        """The transaction is long: its event was recorded before the deadline, and is committed long after it."""
        _order, other, row = asked_of_another(now)
        [rest] = ran(row, now)
        until = rest.scheduled_at

        def there():
            ran(row, until + timedelta(hours=1))
            connections.close_all()

        with transaction.atomic():
            came = given(other, until - timedelta(microseconds=1))
            looks = threading.Thread(target=there)
            looks.start()
            looks.join(120)
        row.refresh_from_db()
        assert row.state == State.RETRYABLE

        [end] = ran(row, until + timedelta(hours=2))
        assert end.result == str(came.event.pk)


class TestADeclaredWait:
    @pytest.mark.parametrize("atomic", [True, "shared", False])
    def test_holds_no_lock_of_the_other_while_its_handler_runs(self, now, atomic):
        """The time has run out. Who emits now is too late, and need not wait for what the handler does."""
        emitted = []

        class Closing(Timeline):
            entity = "testapp.Order"

            @task(wait_for("code.given", of=lambda _order: OTHER[-1], within=WITHIN), atomic=atomic)
            def close(self, order: Order) -> str:
                emits = threading.Thread(
                    target=lambda: (emitted.append(given(OTHER[-1], self.now)), connections.close_all())
                )
                emits.start()
                emits.join(120)
                return str(self.awaited and self.awaited.pk)

        with only_timelines(Closing):
            order = Order.objects.create(ships_at=now)
            OTHER[:] = [Order.objects.create(ships_at=now)]
            start(timeline="closing", entity=order, key="", params={}, started_at=None, now=now, using="default")
            row = ScheduledTask.objects.get(entity_id=str(order.pk))
            ran(row, now)

            [end] = ran(row, now + WITHIN)

            assert (end.result, len(emitted)) == ("None", 1)


class TestManyThatWaitForOne:
    def test_go_to_rest_side_by_side(self, now):
        """The lock that says that nothing is being emitted is shared: none of them has to look again."""
        first, other, row = asked_of_another(now)
        attempt, write = begun(row, now)
        order, second = asked(now)
        assert first != order
        further = begun(second, now)

        with transaction.atomic():
            rested(attempt, write, now)
            rests = threading.Thread(target=lambda: (rested(*further, now), connections.close_all()))
            rests.start()
            rests.join(120)
            assert not rests.is_alive()

        for waits in (row, second):
            waits.refresh_from_db()
            assert (waits.awaits_id, waits.scheduled_at >= now + WITHIN) == (str(other.pk), True)


class TestAHostThatHasBothLocked:
    def test_ends_one_and_emits_on_the_other_beside_the_rest(self, at_once, now):
        """It exits the order that waits, then emits on the one that is waited for; the task goes to rest meanwhile."""
        for number in range(ROUNDS):
            order, other, row = asked_of_another(now)
            attempt, write = begun(row, now)

            def host(order=order, other=other):
                with transaction.atomic():
                    given(order, now, "order.closed")
                    time.sleep(0.002)
                    return given(other, now)

            done = at_once(with_a_lead(number, host), with_a_lag(number, partial(rested, attempt, write, now)))

            assert not [error for error in done if isinstance(error, Exception)]
            row.refresh_from_db()
            assert (row.state, row.reason_code) == (State.CANCELLED, "exit")
            stage(now=now, using="default")
        assert not Wake.objects.exists()

    def test_emits_while_somebody_has_the_waiting_task_locked(self, now):
        """The poll leaves it, with the note; the next one wakes it."""
        _order, other, row = asked_of_another(now)
        ran(row, now)
        given(other, now)

        with transaction.atomic():
            list(ScheduledTask.objects.filter(pk=row.pk).select_for_update(no_key=True))
            polls = threading.Thread(target=lambda: (stage(now=now, using="default"), connections.close_all()))
            polls.start()
            polls.join(120)
            assert not polls.is_alive()
        row.refresh_from_db()
        assert (row.state, Wake.objects.count()) == (State.RETRYABLE, 1)

        stage(now=now, using="default")
        row.refresh_from_db()
        assert (row.state, Wake.objects.count()) == (State.AVAILABLE, 0)


class TestTwoPolls:
    def test_wake_once(self, at_once, now):
        rows = []
        for _ in range(20):
            _order, other, row = asked_of_another(now)
            ran(row, now)
            rows.append(row)
            given(other, now)

        done = at_once(*[partial(stage, now=now, using="default")] * 4)

        assert sum(done) <= 20
        stage(now=now, using="default")
        assert not Wake.objects.exists()
        for row in rows:
            assert row.log.filter(to_state=State.AVAILABLE, reason_code="event").count() == 1


RESTS_WITHOUT_THE_OTHER = Fault(
    "a task goes to rest without the lock of the entity that it waits for",
    (Change("features.waits.calls:_sooner", "rests.wait.of in ours", "True"),),
)
NOTES_BY_AN_EARLY_LOOK = Fault(
    "who waits is asked before the entity is locked",
    (
        Change(
            "operations.emit:emit",
            "        at = _locked(",
            "        early = TimelineRun.objects.using(using).filter(tasks__awaits_id=subject.ref.id).exists()\n"
            "        at = _locked(",
        ),
        Change(
            "operations.emit:emit",
            "note(said.name, said.key, done.awaited,",
            "note(said.name, said.key, done.awaited if early else [],",
        ),
    ),
)


def a_rest_beside_an_event(now):
    """The event is not committed yet: the rest cannot see it, and must not trust that nothing comes."""
    _order, other, row = asked_of_another(now)
    attempt, write = begun(row, now)
    with transaction.atomic():
        given(other, now)
        rests = threading.Thread(target=lambda: (rested(attempt, write, now), connections.close_all()))
        rests.start()
        rests.join(120)
    stage(now=now + timedelta(seconds=5), using="default")
    row.refresh_from_db()
    assert row.state == State.AVAILABLE, "nobody waked it"


def an_event_beside_a_rest(now):
    """The rest is not committed yet, and has the lock of the other: the event comes after it, and sees it."""
    _order, other, row = asked_of_another(now)
    attempt, write = begun(row, now)
    with transaction.atomic():
        rested(attempt, write, now)
        event = threading.Thread(target=lambda: (given(other, now), connections.close_all()))
        event.start()
        wait_for_a_waiter(event)
    event.join(120)
    stage(now=now, using="default")
    row.refresh_from_db()
    assert row.state == State.AVAILABLE, "nobody waked it"


CASES = [(a_rest_beside_an_event, RESTS_WITHOUT_THE_OTHER), (an_event_beside_a_rest, NOTES_BY_AN_EARLY_LOOK)]


@pytest.mark.parametrize(("case", "fault"), CASES, ids=[fault.name for _case, fault in CASES])
class TestPlantedFault:
    def test_is_noticed(self, case, fault, now, tmp_path):
        with planted(fault, tmp_path), pytest.raises(AssertionError):
            case(now)

    def test_is_what_goes_well_without_it(self, case, fault, now):
        case(now)
