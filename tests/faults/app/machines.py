"""A machine: somebody tries to get an appointment, and rests for people, for a while, or for a portal that is down."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from tests.faults.app.models import Subject
from tests.faults.app.timelines import SOON, handled
from timeline import BACK, STAY, WORKING, Machine, Retry, Then, on, task

TABLE = {
    "asking": {"visit.offered": "offered", "visit.halted": "halted"},
    "offered": {"visit.chosen": "booking", "visit.too_late": "lost"},
    "booking": {"visit.booked": "booked", "visit.gone": "asking"},
    "down": {"visit.up": BACK, "visit.given_up": "lost"},
    "halted": {"visit.resolved": BACK, "visit.reminded": STAY, "visit.unresolved": "lost"},
    "booked": {"visit.reminded": STAY, "visit.over": "done", "visit.withdrawn": "lost"},
    "done": {},
    "lost": {},
    WORKING: {"visit.down": "down"},
}
# What people say, in which state; what only its tasks and timers say is not among it.
SAID = {
    "offered": ("visit.chosen",),
    "halted": ("visit.resolved", "visit.reminded"),
    "booked": ("visit.reminded", "visit.withdrawn"),
}
# What the checker is told of it: written down once more, as the database's words have it.
DECLARED = {
    "visit": {
        "asking": {"visit.offered": "offered", "visit.halted": "halted", "visit.down": "down"},
        "offered": {"visit.chosen": "booking", "visit.too_late": "lost"},
        "booking": {"visit.booked": "booked", "visit.gone": "asking", "visit.down": "down"},
        "down": {"visit.up": "BACK", "visit.given_up": "lost"},
        "halted": {"visit.resolved": "BACK", "visit.reminded": "STAY", "visit.unresolved": "lost"},
        "booked": {"visit.reminded": "STAY", "visit.over": "done", "visit.withdrawn": "lost"},
        "done": {},
        "lost": {},
    }
}


class Visit(Machine):
    """Asks, is offered a time, and books it."""

    entity = "faults.Subject"
    starts_on = "visit.wanted"
    initial = "asking"
    table = TABLE
    working = ("asking", "booking")
    timers: ClassVar = {
        "visit.too_late": on("offered", seconds=8),
        "visit.unresolved": on("halted", seconds=8),
        "visit.over": on("booked", seconds=2),
        "visit.up": on(
            "down",
            backoff=Retry(base=timedelta(seconds=0.3), cap=timedelta(seconds=1), max_attempts=5),
            spent="visit.given_up",
        ),
    }

    @task(on("asking"), retry=SOON)
    def ask(self, subject: Subject) -> Then:
        with handled(self, "atomic"):
            return Then(_drawn(self, {"visit.offered": 6, "visit.halted": 2, "visit.down": 2}))

    @task(on("booking"), atomic=False, retry=SOON)
    def book(self, subject: Subject) -> Then:
        with handled(self, "plain"):
            return Then(_drawn(self, {"visit.booked": 6, "visit.gone": 2, "visit.down": 2}))


def _drawn(context: Visit, weights: dict[str, int]) -> str:
    """One of these events, drawn by the id of the task: the same in each attempt."""
    events = [event for event, weight in weights.items() for _ in range(weight)]
    return events[context.task.pk.int % len(events)]
