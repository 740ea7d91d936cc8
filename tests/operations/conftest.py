"""What tests of the sweep share."""

import pytest

from tests.testapp.models import Order


@pytest.fixture
def planned(now, later, start_at):
    """So many orders, each with an open run and a date: ``planned(3)``."""

    def plan(count):
        orders = Order.objects.bulk_create([Order(ships_at=later) for _ in range(count)])
        for order in orders:
            start_at("delivery", order, now)
        return orders

    return plan
