"""What the small site of ``fill.py`` knows: its trials, and timelines that leave rows of each kind there is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from project.accounts.timelines import Trial
from tests.testapp.models import Leg, Order, Trip
from tests.testapp.timelines import CrashCase
from timeline import (
    OPEN,
    Limit,
    Machine,
    Retry,
    Then,
    Timeline,
    after,
    approval,
    each_of,
    every,
    on,
    step,
    task,
    wait_for,
    weekly,
)


def charge(order: Order) -> None:
    """Stands for a bank, which ``fill.py`` lets be away."""


class Sale(Timeline):
    """An order is packed, sent in parcels, asked about, and maybe refunded."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.returned": "returned"}

    @task(after(), atomic=False)
    def pack(self, order: Order) -> dict[str, Any]:
        """Print a label; then wait until the address is confirmed."""
        label = self.print_label(order.pk)
        answer = self.wait_for("address.confirmed", within=timedelta(days=10))
        return {"label": label, "confirmed": answer is not None}

    @step
    def print_label(self, order_id: int) -> str:
        """A label has a name of its own."""
        return f"label {order_id}"

    @task(wait_for("order.paid", within=timedelta(days=10)))
    def thank(self, order: Order) -> dict[str, bool]:
        """Begins with a wait."""
        return {"paid": self.awaited is not None}

    @task(after())
    def split(self, order: Order) -> None:
        """Two parcels."""
        self.fan_out(self.send_parcel, {"1": {"kg": 2.5}, "2": {"kg": 10}})

    @task(each_of(split), atomic=False)
    def send_parcel(self, order: Order) -> Any:
        """One of them."""
        return self.task.payload["kg"]

    @task(after(send_parcel, days=1))
    def sum_up(self, order: Order) -> None:
        """When both are sent."""

    @task(approval("refund", by="testapp.change_order", within=timedelta(days=10)))
    def refund(self, order: Order) -> str:
        """When somebody has said yes."""
        return self.awaited.name if self.awaited is not None else "nobody decided"

    @task(every(days=7, most=3), atomic=False)
    def ask(self, order: Order) -> None:
        """How do you like it?"""


class Charging(Timeline):
    """One call to the bank at a time, until it is over."""

    entity = "testapp.Order"
    starts_on = "charge.asked"

    @task(after(), atomic=False, limit=Limit(1, "bank", until="end"), retry=Retry(base=timedelta(minutes=1)))
    def charge(self, order: Order) -> None:
        """Keeps its place while it waits to be tried again."""
        charge(order)


class Journey(Machine):
    """A trip is under way, may be held up, and arrives. It tells of it, and shows it on its row."""

    entity = "testapp.Trip"
    starts_on = "trip.booked"
    initial = Leg.PLANNED
    mirror = "state"
    table = {
        Leg.PLANNED: {"trip.left": Leg.UNDER_WAY},
        Leg.UNDER_WAY: {"trip.held_up": Leg.DELAYED, "trip.arrived": Leg.ARRIVED},
        Leg.DELAYED: {"trip.left": Leg.UNDER_WAY},
        Leg.ARRIVED: {},
        OPEN: {"trip.called_off": Leg.ARRIVED},
    }
    timers = {"trip.left": on(Leg.DELAYED, hours=2)}
    tells = (Leg.DELAYED, Leg.ARRIVED)

    @task(on(Leg.PLANNED, days=1))
    def leave(self, trip: Trip) -> Then:
        """Set out."""
        return Then("trip.left")

    @task(on(Leg.UNDER_WAY, days=1))
    def arrive(self, trip: Trip) -> Then:
        """Be there."""
        return Then("trip.arrived")


class Counting(Timeline):
    """The clock starts it each week."""

    starts_on = weekly("mon 06:00", zone="Europe/Berlin", once_per="week")

    @task(after())
    def count(self) -> dict[str, int]:
        """Count the orders."""
        return {"orders": Order.objects.count()}


TIMELINES: Final = (Trial, CrashCase, Sale, Charging, Journey, Counting)
