"""A machine that shows its state on its entity's model."""

from __future__ import annotations

from tests.testapp.models import Leg, Trip
from timeline import OPEN, Machine, Then, after, task


class Travel(Machine):
    """A trip: it may be delayed any number of times, and arrives."""

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

    @task(after(days=1))
    def leave(self, trip):
        """Set out."""
        return Then("trip.left")


def shown(trip):
    """What the row says, whatever the instance does."""
    return Trip.objects.values_list("state", flat=True).get(pk=trip.pk)


def overwrite(trip, state):
    """Write the column as raw SQL would."""
    Trip.objects.filter(pk=trip.pk).update(state=state)
