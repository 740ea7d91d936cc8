"""What somebody saw before they decided: a decision about what has changed since is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.exceptions import ChangedSince
from timeline.models import ScheduledTask

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Seen = Mapping[UUID, int]
"""Task id → its ``seq`` as it was shown. What is not in it may have changed."""


class Revision(Protocol):
    """What is said of the latest revision of a task."""

    revision: int
    state: str
    seq: int
    scheduled_at: datetime
    actor: str
    reason: str


def refuse_changed(tasks: Iterable[ScheduledTask], seen: Seen | None) -> None:
    """
    Refuse to go on if one of the tasks has changed since it was seen.

    Args:
        tasks: Locked, so that they stay as they are until the decision is written.
        seen: What was shown; None: nobody says.

    Raises:
        ChangedSince: naming the first that has.
    """
    for task in tasks if seen else ():
        if seen.get(task.pk, task.seq) != task.seq:  # type: ignore[union-attr]
            raise _changed(task, task)


def refuse_redriven(task: ScheduledTask, later: Revision, seen: Seen | None) -> None:
    """
    Refuse to redrive what was redriven since it was seen: its own row says nothing of it.

    Args:
        task: That has ended.
        later: The latest revision of it, perhaps itself.
        seen: As ``refuse_changed`` takes it.

    Raises:
        ChangedSince: saying what the latest revision is by now.
    """
    if seen and task.pk in seen and later.revision > task.revision:
        raise _changed(task, later, remedy=_("It was redriven; look at its latest revision."))


def _changed(task: ScheduledTask, now: Revision, **told: StrOrPromise) -> ChangedSince:
    return ChangedSince(task.pk, now.state, now.scheduled_at, seq=now.seq, actor=now.actor, reason=now.reason, **told)
