"""A machine with timers, tasks of a state and errors that are answers; and what must hold of it at any moment."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import ClassVar

from tests.faults.seeing import Row, Seen
from tests.testapp.models import Order
from timeline import Machine, Retry, Then, on, task
from timeline.lifecycle import OPEN
from timeline.models import Event, RunEntry, TimelineRun

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


def check_doors(seen: Seen) -> None:
    """Entries lead to what a run is, and what is bound to its state is there once, for this visit; nothing else is open."""
    for door in seen.of(TimelineRun, timeline="doors"):
        check_entries(seen, door, "door.")
        assert (door.ended_at is not None) == (door.state == "over")
        rows = [(row.task_key, row.occurrence) for row in seen.tasks(run_id=door.id) if row.state in OPEN]
        wanted = [(BOUND[door.state], str(door.moves))] if door.state in BOUND else []
        assert rows == wanted, f"a door is {door.state} for the {door.moves}th time, and has {rows}"


def check_entries(seen: Seen, run: Row, its: str) -> None:
    """What a run is, its entries lead to; each but the first is of an event that is there. ``its``: how their names begin."""
    entries = sorted(seen.of(RunEntry, run_id=run.id), key=lambda entry: entry.seq)
    assert [entry.seq for entry in entries] == list(range(run.moves + 1))
    assert (entries[-1].to_state, entries[-1].at, entries[-1].back) == (run.state, run.state_at, run.back)
    assert all(later.from_state == earlier.to_state for earlier, later in pairwise(entries))
    events = [event for event in seen.of(Event, entity_id=run.entity_id) if event.name.startswith(its)]
    moves = [event.id for event in events if event.name != f"{its}made"]
    assert sorted(entry.cause_id for entry in entries[1:]) == sorted(moves)
