"""
Brake: within a time, no more tasks of a destructive kind are let in than its declaration allows. If more would start, the
kind is put on hold.

Each look first writes down, and commits, which tasks it lets in; then it counts. So of several looks at the same moment,
the last to write sees what all others have let in: together they never let in more than is allowed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from timeline.engine.attempting import Attempt
from timeline.lifecycle import Reason
from timeline.models import Hold
from timeline.operations.parking import park
from timeline.registry import registry
from timeline.store.admitting import admit, admitted_among, released_at, withdraw, would_start
from timeline.store.holds import reason_of
from timeline.store.isolating import atomic


def braked(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Reason]:
    """
    Find attempts whose kind the brake puts on hold. No statement, if none of them is of a destructive kind.

    Tasks that were let in before are let in again, and so are tasks that a person let go by releasing the brake. A task that
    is tried again is counted anew: the worker that let it in may have been killed before it counted.

    Args:
        attempts: Attempts that could otherwise run.
        now: Story time.
        using: Database alias.

    Returns:
        Id of a task → why it must not run now.
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
    """
    Put a kind on hold; what was new was not let in. None: a person has released its brake since it was counted, and what they
    let go is not theirs to hold again.
    """
    with suppress(_ReleasedMeanwhile), atomic(using=using):
        hold = park(task_key, most=most, within=within, now=now, using=using)
        if released_at(task_key, using=using) != released:
            raise _ReleasedMeanwhile
        withdraw(new, using=using)
        return hold
    return None


class _ReleasedMeanwhile(Exception):
    """The hold that was made is undone, with who was told of it."""
