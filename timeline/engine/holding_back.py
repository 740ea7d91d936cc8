"""Hold back: a task that was put on hold after it was claimed is given back, as if it had not been started."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from timeline.engine.attempting import Attempt
from timeline.lifecycle import Reason
from timeline.store.holds import holds_over, is_any_open, reason_of


def held_back(attempts: Sequence[Attempt], some_on_hold: bool | None, *, using: str) -> dict[UUID, Reason]:
    """
    Find attempts that are on hold. No statement, if nothing is known to be; else one probe, and two more if something is.

    Args:
        attempts: Attempts that could otherwise run.
        some_on_hold: Whether anything is on hold; None: not known yet.
        using: Database alias.

    Returns:
        Id of a task → why it must not run now.
    """
    if not attempts or some_on_hold is False:
        return {}
    if some_on_hold is None and not is_any_open(using=using):
        return {}
    found = holds_over([attempt.task for attempt in attempts], using=using)
    return {task_id: reason_of(holds[0]) for task_id, holds in found.items()}
