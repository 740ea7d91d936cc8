"""
The brake: a destructive kind starts no more tasks within a time than declared; if more would, it is put on hold.

Each look first commits which tasks it lets in, then counts. So of several looks at once the last to write sees what all let
in: together they never let in too many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from timeline.engine.attempts import Attempt
from timeline.features.holds.store import (
    admit,
    admitted_among,
    holds_over,
    is_any_open,
    reason_of,
    released_at,
    withdraw,
    would_start,
)
from timeline.features.holds.verbs import park
from timeline.lifecycle import Reason
from timeline.models import Hold
from timeline.registry import registry
from timeline.store.transactions import atomic


def braked(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Reason]:
    """
    Attempts whose kind the brake puts on hold: id of a task → why. No statement, if none is of a destructive kind.

    What was let in before is let in again, also by who released the brake. A task that is tried again is counted anew: the
    worker that let it in may have been killed before it counted.
    """
    kinds: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if attempt.declared.options.park_above is not None and not registry.in_shadow(attempt.task.task_key):
            kinds[attempt.task.task_key].append(attempt)
    refused: dict[UUID, Reason] = {}
    for task_key, some in sorted(kinds.items()):
        refused |= _braked(task_key, some, now=now, using=using)
    return refused


def _braked(task_key: str, attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Reason]:
    known = admitted_among([attempt.task.id for attempt in attempts], using=using)
    new = [attempt.task.id for attempt in attempts if attempt.task.id not in known]
    is_sure = all(attempt.task.attempt == 1 for attempt in attempts if attempt.task.id in known)
    options = attempts[0].declared.options
    if options.park_above is None or (is_sure and not new):
        return {}
    if new:
        admit(task_key, dict.fromkeys(new, now), using=using)
    hold = None
    while hold is None:
        released = released_at(task_key, using=using)
        count = would_start(
            task_key,
            most=options.park_above,
            since=now - options.park_within,
            later_than=released,
            now=now,
            using=using,
        )
        if count <= options.park_above:
            return {}
        hold = _stop(task_key, new, options.park_above, options.park_within, released, now=now, using=using)
    return dict.fromkeys((attempt.task.id for attempt in attempts), reason_of(hold))


def _stop(
    task_key: str,
    new: Sequence[UUID],
    most: int,
    within: timedelta,
    released: datetime | None,
    *,
    now: datetime,
    using: str,
) -> Hold | None:
    """Put a kind on hold, and let in nothing new; None: a person released its brake meanwhile, and what they let go stays."""
    with suppress(_ReleasedMeanwhile), atomic(using=using):
        hold = park(task_key, most=most, within=within, now=now, using=using)
        if released_at(task_key, using=using) != released:
            raise _ReleasedMeanwhile
        withdraw(new, using=using)
        return hold
    return None


class _ReleasedMeanwhile(Exception):
    """The hold that was made is undone, with who was told of it."""


def held_back(attempts: Sequence[Attempt], some_on_hold: bool | None, *, using: str) -> dict[UUID, Reason]:
    """Attempts that are on hold: id of a task → why. ``some_on_hold``: False costs no statement, None (not known) a probe."""
    if not attempts or some_on_hold is False:
        return {}
    if some_on_hold is None and not is_any_open(using=using):
        return {}
    found = holds_over([attempt.task for attempt in attempts], using=using)
    return {task_id: reason_of(holds[0]) for task_id, holds in found.items()}
