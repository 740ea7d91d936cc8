"""The lock order of tasks: whoever writes several at once takes them by their ids, so that nobody is deadlocked."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
from django.db import connection, transaction

from tests.postgresql.races import now, somebody_waits
from tests.processes import wait_for
from timeline.dispatch.claim import ClaimedBatch, hand_back
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import ScheduledTask
from timeline.store.transition import Write, apply

pytestmark = pytest.mark.django_db(transaction=True)

REASON = Reason(ReasonCode.RELEASED, "the worker stopped before it got to it")


@pytest.fixture
def against_the_order(at_once):
    """
    Write tasks while somebody holds the first and then takes the last: ``against_the_order(rows, write)`` gives what became
    of both. Who took the last before it waits for the first is deadlocked.
    """

    def race(rows, write):
        held = threading.Event()

        def take(row):
            return list(ScheduledTask.objects.filter(pk=row.pk).locked())

        def hold():
            with transaction.atomic():
                take(rows[0])
                held.set()
                wait_for(somebody_waits, "the write's waiting for the first row")
                return len(take(rows[-1]))

        def write_then():
            assert held.wait(120)
            return write()

        return at_once(hold, write_then)

    return race


@pytest.mark.parametrize("backwards", [False, True])
class TestSeveralTasks:
    """Whichever way they lie in the table, and are given."""

    def rows(self, make_task, backwards, **columns):
        keys = sorted((uuid4() for _ in range(3)), key=str)
        made = [make_task(pk=key, **columns) for key in (keys[::-1] if backwards else keys)]
        return sorted(made, key=lambda row: str(row.pk))

    def test_are_given_back_in_the_lock_order(self, make_task, against_the_order, backwards):
        rows = self.rows(make_task, backwards, state=State.ACTIVE, attempt=1)
        given = rows[::-1] if backwards else rows

        def give_back():
            writes = [Write(task=row, triggers=(Trigger.RETRY,), scheduled_at=now(), reason=REASON) for row in given]
            return len(apply(writes, now=now(), using="default"))

        assert against_the_order(rows, give_back) == [1, 3]

    def test_are_handed_back_without_waiting_for_one(self, make_task, at_once, backwards):
        """What somebody else has, they start or end."""
        token = uuid4()
        rows = self.rows(make_task, backwards, state=State.PENDING, claim_token=token)

        def hand_them_back():
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            return hand_back([ClaimedBatch("trial.remind", "", token, [row.pk for row in rows])], using="default")

        with transaction.atomic():
            list(ScheduledTask.objects.filter(pk=rows[0].pk).locked())
            [count] = at_once(hand_them_back)

        assert count == 2
