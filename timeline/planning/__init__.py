"""
The pure diff: what the definition wants for one run, against the rows there are.

The answer depends on present facts only (definition, run, anchors, rows, now), so that asking twice changes nothing the
second time. No database, no clock.
"""

from timeline.planning.answers import Cancel, Create, Foreseen, Keep, Move, Plan, PlannedChange, TaskRow, Times
from timeline.planning.planner import plan
from timeline.planning.sharing import Share, batch_size, shares
from timeline.planning.visits import Place

__all__ = [
    "Cancel",
    "Create",
    "Foreseen",
    "Keep",
    "Move",
    "Place",
    "Plan",
    "PlannedChange",
    "Share",
    "TaskRow",
    "Times",
    "batch_size",
    "plan",
    "shares",
]
