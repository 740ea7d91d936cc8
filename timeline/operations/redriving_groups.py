"""Redrive a group: run again all dead letters with the same failure, in batches, after their cause is repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.definition.checking_states import MAX_TASK_KEY
from timeline.exceptions import AlreadyOpen, InvalidInput, RunEnded, TransitionNotAllowed
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.operations.redriving import redrive
from timeline.operations.sets import check_spread
from timeline.payloads import check_text

BATCH: Final = 250

_REFUSED: Final = (AlreadyOpen, RunEnded, TransitionNotAllowed, ScheduledTask.DoesNotExist)


@dataclass(slots=True)
class Redriven:
    """
    What was done.

    Args:
        redriven: How many tasks run again.
        left: The tasks that cannot run again: id → why.
    """

    redriven: int = 0
    left: dict[UUID, str] = field(default_factory=dict)


def redrive_group(
    *, group: str, reason: Reason, spread: timedelta | None = None, now: datetime, using: str
) -> Redriven:
    """
    Redrive the dead letters of a group that were there when this began. Called again after a crash, it continues.

    Args:
        group: The fingerprint of the group; for tasks that failed before fingerprints existed, their task key.
        reason: Text shown to people, and who decided; kept on the new rows.
        spread: If given, the tasks become due up to so much later, each at a moment of its own; 30 days at most. None: all are
            due at once.
        now: Story time of the decision.
        using: Database alias.

    Returns:
        What was done. Each batch commits on its own, unless you are in a transaction. A task that cannot be redriven (for
        example because its run was ended by an exit) is left out and does not prevent the others.

    Raises:
        InvalidInput: naming ``spread``, or ``group`` if it is empty or no text for a column; nothing is changed then.
    """
    check_spread(spread)
    check_text("group", group, MAX_TASK_KEY)
    if not group:
        raise InvalidInput("group", _("is empty."), _("Give the fingerprint of a group."))
    done = Redriven()
    dead = ScheduledTask.objects.using(using).dead_letters(group).filter(finished_at__lte=now)
    last: UUID | None = None
    while ids := list((dead.filter(pk__gt=last) if last else dead).order_by("pk").values_list("pk", flat=True)[:BATCH]):
        last = ids[-1]
        _redrive(ids, done, reason, spread, now, using)
    return done


def redrive_those(
    task_ids: Sequence[UUID], *, reason: Reason, spread: timedelta | None = None, now: datetime, using: str
) -> Redriven:
    """
    Redrive some dead letters, as ``redrive_group`` does.

    Args:
        task_ids: Ids of dead letters, any number.
        reason, spread, now, using: As for ``redrive_group``.

    Raises:
        InvalidInput: naming ``spread``; nothing is changed then.
    """
    check_spread(spread)
    done = Redriven()
    for begin in range(0, len(task_ids), BATCH):
        _redrive(task_ids[begin : begin + BATCH], done, reason, spread, now, using)
    return done


def _redrive(
    ids: Sequence[UUID], done: Redriven, reason: Reason, spread: timedelta | None, now: datetime, using: str
) -> None:
    """Redrive all; if one task cannot be redriven, try each half, so that only that one is left out."""
    try:
        done.redriven += len(redrive(task_ids=ids, reason=reason, now=now, using=using, spread=spread))
    except _REFUSED as error:
        if len(ids) == 1:
            done.left[ids[0]] = str(error)
        else:
            middle = len(ids) // 2
            for half in (ids[:middle], ids[middle:]):
                _redrive(half, done, reason, spread, now, using)
