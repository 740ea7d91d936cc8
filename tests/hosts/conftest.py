"""What the tests of hosts share: a timeline about orders."""

from __future__ import annotations

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.testing import only_timelines


class Delivery(Timeline):
    """A run of two tasks, and one that is scheduled ad hoc."""

    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=1))
    def pack(self, order: Order) -> str:
        return str(order._state.db)

    @task(after(pack, days=1))
    def ship(self, order: Order) -> None: ...

    @task()
    def call(self, order: Order) -> None: ...


@pytest.fixture
def delivery():
    """The only timeline there is, with a run for each order that is placed."""
    with only_timelines(Delivery):
        yield Delivery
