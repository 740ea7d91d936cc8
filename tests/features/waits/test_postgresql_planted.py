"""What protects waits, taken away one by one: each time it is noticed, and without the fault all goes well."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections, transaction

from tests.faults.planted.surgery import Change, Fault, planted
from tests.features.waits.test_postgresql import Asking, asked, begun, given, ran, rested
from tests.postgresql.races import wait_for_a_waiter
from timeline.engine.finalize import settle
from timeline.lifecycle import State
from timeline.operations.emit import emit
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)


LOOKS_BEFORE_THE_LOCK = Fault(
    "whether anybody waits is asked before the entity is locked",
    (
        Change(
            "operations.emit:emit",
            "        at = _locked(",
            "        waiting = TimelineRun.objects.using(using).filter(entity_id=subject.ref.id, tasks__state='retryable')\n"
            "        early = waiting.exists()\n"
            "        at = _locked(",
        ),
        Change(
            "operations.emit:emit",
            " wake(said.name, said.key, done.awaited,",
            " wake(said.name, said.key, done.awaited if early else [],",
        ),
    ),
)
RESTS_WITHOUT_THE_LOCK = Fault(
    "a task goes to rest without the lock of its entity",
    (
        Change(
            "engine.finalize:settle",
            "        refs = [task.entity_ref for task in ending]\n",
            "        refs = []\n",
        ),
        Change("features.waits.calls:still_to_wait", "task.entity_ref not in locked.entities", "False"),
    ),
)
BY_OCCURRENCE = Fault(
    "what happened before the deadline counts, whenever it was recorded",
    (
        Change("features.waits.store:first_met", "recorded_at__gte=wait.since", "occurred_at__gte=wait.since"),
        Change("features.waits.store:first_met", "recorded_at__lt=wait.until", "occurred_at__lt=wait.until"),
    ),
)


@pytest.fixture(autouse=True)
def _asking():
    with only_timelines(Asking):
        yield


def beside(act):
    """Begin it in a thread with a connection of its own, and let it come to where it waits."""

    def there():
        act()
        connections.close_all()

    thread = threading.Thread(target=there)
    thread.start()
    wait_for_a_waiter(thread)
    return thread


def an_event_that_waits_for_a_rest(now):
    """The rest is not committed yet, and has the lock: the event comes after it, and sees it."""
    order, row = asked(now)
    _attempt, write = begun(row, now)
    with transaction.atomic():
        settle([write], now=now, using="default")
        event = beside(lambda: given(order, now + timedelta(minutes=1)))
    event.join(120)
    row.refresh_from_db()
    assert row.state == State.AVAILABLE, "nobody waked it"


def a_rest_that_waits_for_an_event(now):
    """The event is not committed yet, and has the lock: the rest comes after it, and sees it."""
    order, row = asked(now)
    attempt, write = begun(row, now)
    with transaction.atomic():
        given(order, now + timedelta(seconds=1))
        rests = beside(lambda: rested(attempt, write, now))
    rests.join(120)
    row.refresh_from_db()
    assert row.scheduled_at == now, "it rests, though the event is there"


def an_event_recorded_too_late(now):
    """Backdated into the time of the wait, and recorded after it."""
    order, row = asked(now)
    [rest] = ran(row, now)
    until = rest.scheduled_at
    said = {"name": "code.given", "key": "", "payload": {}, "actor": "", "using": "default"}
    emit(entity=order, occurred_at=until - timedelta(minutes=1), now=until + timedelta(seconds=1), **said)
    [end] = ran(row, until + timedelta(seconds=2))
    assert end.result == "nothing", "it counted"


CASES = [
    (an_event_that_waits_for_a_rest, LOOKS_BEFORE_THE_LOCK),
    (a_rest_that_waits_for_an_event, RESTS_WITHOUT_THE_LOCK),
    (an_event_recorded_too_late, BY_OCCURRENCE),
]


@pytest.mark.parametrize(("case", "fault"), CASES, ids=[fault.name for _case, fault in CASES])
class TestPlantedFault:
    def test_is_noticed(self, case, fault, now, tmp_path):
        with planted(fault, tmp_path), pytest.raises(AssertionError):
            case(now)

    def test_is_what_goes_well_without_it(self, case, fault, now):
        case(now)
