"""
The pure diff: compares the rows that a definition wants for one run with the existing rows.

The answer depends only on the present (definition, run, anchors, rows, now), so a second call finds nothing more to
change. No database, no clock.
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
