"""Redrive a group: run again all dead letters that failed alike, in batches, once their cause is mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.exceptions import AlreadyOpen, InvalidInput, RunEnded, TransitionNotAllowed
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.operations.redriving import redrive
from timeline.operations.sets import check_spread

BATCH: Final = 250

_REFUSED: Final = (AlreadyOpen, RunEnded, TransitionNotAllowed, ScheduledTask.DoesNotExist)


@dataclass(slots=True)
class Redriven:
    """
    What was done.

    Args:
        redriven: How many tasks run again.
        left: Those that cannot: their ids → why.
    """

    redriven: int = 0
    left: dict[UUID, str] = field(default_factory=dict)


def redrive_group(
    *, group: str, reason: Reason, spread: timedelta | None = None, now: datetime, using: str
) -> Redriven:
    """
    Redrive the dead letters of a group, as far as there were any when it began. Called again after a crash, it goes on.

    Args:
        group: Its fingerprint; of tasks that failed before there were any, their task key.
        reason: Text shown to people, and who decided; kept on the new rows.
        spread: Within which they become due, each at a moment of its own; 30 days at most. None: all at once.
        now: Story time of the decision.
        using: Database alias.

    Returns:
        What was done. Each batch commits on its own, unless you are in a transaction; a task that cannot be redriven, because
        its run ended otherwise, say, is left and keeps none of the others.

    Raises:
        InvalidInput: naming ``spread``, or ``group`` where it is empty; nothing is changed then.
    """
    check_spread(spread)
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
        task_ids: Any number.
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
    """Redrive all; if one of them cannot be, the halves, so that only that one stays."""
    try:
        done.redriven += len(redrive(task_ids=ids, reason=reason, now=now, using=using, spread=spread))
    except _REFUSED as error:
        if len(ids) == 1:
            done.left[ids[0]] = str(error)
        else:
            middle = len(ids) // 2
            for half in (ids[:middle], ids[middle:]):
                _redrive(half, done, reason, spread, now, using)
