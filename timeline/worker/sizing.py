"""How many tasks of a kind to start together."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from timeline.engine.running import BUDGET
from timeline.exceptions import UnknownTask
from timeline.registry import registry
from timeline.worker.pace import Pace

# How long ago the last look of a group may be when the group begins to run: it is planned for BUDGET less this time.
LAG: Final = timedelta(milliseconds=14)
# How much earlier a group that has one transaction is planned to end. Handlers vary: what is left of the group when its time is
# up needs another look and another transaction.
SPARE: Final = timedelta(milliseconds=7)
SLOW: Final = timedelta(milliseconds=0.5)  # Faster handlers leave no time to do anything meanwhile.


def group_size(task_key: str, pace: Pace, *, records_late: bool = False) -> int:
    """
    Give how many tasks of a kind to start together: the number that is declared, or else the number that the pace allows.

    Args:
        task_key: The kind.
        pace: The pace of this process.
        records_late: Whether outcomes are recorded on the side thread, while the next group runs.
    """
    try:
        declared = registry.task(task_key)[1]
    except UnknownTask:
        return 1
    if records_late and leaves_time(task_key, pace):
        budget = BUDGET - LAG
    elif declared.options.atomic:
        budget = BUDGET - SPARE
    else:
        budget = BUDGET
    return declared.at_once or pace.most(task_key, budget)


def leaves_time(task_key: str, pace: Pace) -> bool:
    """Whether handlers of this kind leave time for other work: they hold no transaction, and are not very fast."""
    return registry.task(task_key)[1].is_plain and pace.seconds(task_key) >= SLOW.total_seconds()
