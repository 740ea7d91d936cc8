"""A machine before and after its table was changed: ``CHECKED`` is called ``PACKED`` now, and ``ODD`` is gone."""

from __future__ import annotations

from tests.testapp.models import Order
from timeline import BACK, OPEN, Machine, after, task
from timeline.features.machines.edges import see_edges
from timeline.shortcuts import emit, start
from timeline.testing import only_timelines


class Before(Machine):
    name = "tour"
    entity = "testapp.Order"
    initial = "NEW"
    table = {
        "NEW": {"tour.checked": "CHECKED", "tour.strange": "ODD"},
        "CHECKED": {"tour.sent": "SENT", "tour.halted": "HALTED"},
        "ODD": {"tour.checked": "CHECKED"},
        "HALTED": {"tour.freed": BACK},
        "SENT": {},
        OPEN: {"tour.dropped": "SENT"},
    }

    @task(after(days=9))
    def look(self, order): ...


class Now(Machine):
    name = "tour"
    entity = "testapp.Order"
    initial = "NEW"
    table = {
        "NEW": {"tour.checked": "PACKED"},
        "PACKED": {"tour.sent": "SENT", "tour.halted": "HALTED"},
        "HALTED": {"tour.freed": BACK},
        "SENT": {},
        OPEN: {"tour.dropped": "SENT"},
    }

    @task(after(days=9))
    def look(self, order): ...


WAYS = {
    "NEW": [],
    "CHECKED": ["tour.checked"],
    "ODD": ["tour.strange"],
    "HALTED": ["tour.checked", "tour.halted"],
    "SENT": ["tour.dropped"],
}


def toured(*states):
    """Orders whose runs have come to these states under the old table."""
    with only_timelines(Before):
        see_edges(using="default")
        orders = []
        for state in states:
            orders.append(order := Order.objects.create())
            start(Before, order)
            for event in WAYS[state]:
                emit(event, order)
    return orders
