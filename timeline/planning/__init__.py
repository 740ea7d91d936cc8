"""The pure diff of the rows that a definition wants for a run and those there are. Applied twice, it changes nothing more."""

from timeline.planning.answers import (
    Cancel,
    Create,
    Foreseen,
    Keep,
    Move,
    Plan,
    PlannedChange,
    TaskRow,
    Times,
    VisitPlace,
)
from timeline.planning.planner import plan

__all__ = [
    "Cancel",
    "Create",
    "Foreseen",
    "Keep",
    "Move",
    "Plan",
    "PlannedChange",
    "TaskRow",
    "Times",
    "VisitPlace",
    "plan",
]
