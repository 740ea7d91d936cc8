"""Try beside others: who writes about the same entity does not wait until the answer is worked out."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread

import pytest
from django.db import connections
from django.utils import timezone

from tests.testapp.models import Order
from timeline import Timeline, after, at, task, window
from timeline.models import ScheduledTask
from timeline.shortcuts import emit, what_if
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 10  # Seconds, until who waits is said to wait.


class Calendar:
    """Whoever asks it which days are free meets what was put there to be done meanwhile, once, at the call of this number."""

    def __init__(self):
        self.calls, self.at, self.meanwhile = 0, 0, None

    def __call__(self, _day):
        self.calls += 1
        if self.calls == self.at:
            self.meanwhile()
        return False


calendar = Calendar()


class Parcels(Timeline):
    """Foreseeing its last task asks the calendar; making its rows does not."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.returned": "returned"}

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(ship, days=7), window=window("00:00-24:00", holidays=calendar))
    def ask(self, order): ...


@pytest.fixture
def order(transactional_db):
    with only_timelines(Parcels):
        order = Order.objects.create(ships_at=timezone.now() + timedelta(days=10))
        emit("order.placed", order)
        yield order


@pytest.fixture
def beside():
    """
    Try something, and have another connection work while the calendar is asked for the last time: ``beside(work, **change)``
    gives whether the work was done by then, and the effects.
    """

    def try_beside(work, order, **change):
        done = []

        def apart():
            try:
                work()
            finally:
                connections.close_all()

        def meanwhile():
            thread = Thread(target=apart, daemon=True)
            thread.start()
            thread.join(PATIENCE)
            done.append(not thread.is_alive())

        calendar.calls, calendar.at = 0, 0
        what_if(order, **change)
        calendar.calls, calendar.at, calendar.meanwhile = 0, calendar.calls, meanwhile
        return done, what_if(order, **change)

    yield try_beside
    calendar.at = 0


class TestWhatIf:
    def test_lets_others_emit_for_the_same_entity(self, order, beside):
        later = order.ships_at + timedelta(days=5)

        done, effects = beside(lambda: emit("order.returned", order), order, fields={"ships_at": later})

        assert done == [True]
        assert [effect.then_at - effect.at for effect in effects] == [timedelta(days=5)] * 2
        assert not ScheduledTask.objects.open().exists()

    def test_lets_others_write_what_it_has_tried(self, order, beside):
        theirs, later = (order.ships_at + timedelta(days=days) for days in (3, 5))

        def write():
            Order.objects.filter(pk=order.pk).update(ships_at=theirs)

        done, _effects = beside(write, order, fields={"ships_at": later}, event="order.returned")

        order.refresh_from_db()
        assert (done, order.ships_at) == ([True], theirs)
