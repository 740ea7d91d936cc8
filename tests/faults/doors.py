"""A machine with timers, tasks of a state and errors that are answers; and what must hold of it at any moment."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import ClassVar

from tests.testapp.models import Order
from timeline import Machine, Retry, Then, on, task
from timeline.lifecycle import OPEN
from timeline.models import Event, RunEntry, ScheduledTask, TimelineRun

# State → what has one open row while a run is there.
BOUND = {
    "shut": "doors.timer:door.late",
    "opening": "doors.open_it",
    "waits": "doors.timer:door.again",
    "open": "doors.timer:door.late",
}


class JammedError(Exception):
    """The door does not move."""


class Doors(Machine):
    """A door that jams at its first two tries, and falls shut for good when nobody comes for a month."""

    entity = "testapp.Order"
    starts_on = "door.made"
    initial = "shut"
    working = ("opening",)
    table: ClassVar = {
        "shut": {"door.knocked": "opening", "door.late": "over"},
        "opening": {"door.opened": "open", "door.jammed": "waits"},
        "waits": {"door.again": "opening", "door.given_up": "over"},
        "open": {"door.closed": "shut", "door.late": "over"},
        "over": {},
    }
    timers: ClassVar = {
        "door.late": on("shut", "open", days=30),
        "door.again": on("waits", backoff=Retry(base=timedelta(hours=1), max_attempts=4), spent="door.given_up"),
    }
    errors: ClassVar = {JammedError: "door.jammed"}

    @task(on("opening"), atomic=False)
    def open_it(self, order: Order) -> Then:
        if self.visits("opening") < 3:
            raise JammedError(order.pk)
        return Then("door.opened")


def check_doors() -> None:
    """Entries lead to what a run is, and what is bound to its state is there once, for this visit; nothing else is open."""
    for door in TimelineRun.objects.filter(timeline="doors"):
        entries = list(RunEntry.objects.filter(run=door.pk).order_by("seq"))
        assert [entry.seq for entry in entries] == list(range(door.moves + 1))
        assert (entries[-1].to_state, entries[-1].at, entries[-1].back) == (door.state, door.state_at, door.back)
        assert all(later.from_state == earlier.to_state for earlier, later in pairwise(entries))
        assert (door.ended_at is not None) == (door.state == "over")
        events = Event.objects.filter(entity_id=door.entity_id, name__startswith="door.").exclude(name="door.made")
        assert sorted(entry.cause_id for entry in entries[1:]) == sorted(events.values_list("pk", flat=True))
        rows = ScheduledTask.objects.filter(run=door.pk, state__in=OPEN).values_list("task_key", "occurrence")
        wanted = [(BOUND[door.state], str(door.moves))] if door.state in BOUND else []
        assert list(rows) == wanted, f"a door is {door.state} for the {door.moves}th time, and has {list(rows)}"
