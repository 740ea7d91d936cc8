"""What a person saw before a decision: the decision is refused if the task has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.exceptions import ChangedSince
from timeline.models import ScheduledTask
from timeline.payloads import unfit

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


Seen = Mapping[UUID, int]
"""Task id → its ``seq`` when it was shown. A task that is missing here is not checked."""


class Revision(Protocol):
    """The fields of the latest revision of a task that an error reports."""

    revision: int
    state: str
    seq: int
    scheduled_at: datetime
    actor: str
    reason: str


def refuse_changed(tasks: Iterable[ScheduledTask], seen: Seen | None) -> None:
    """
    Raise ``ChangedSince`` for the first locked task that has changed since it was seen; None: nothing is checked.
    ``InvalidInput``: ``seen`` is of another kind; ids that are text would be checked for no task.
    """
    _check(seen)
    for task in tasks if seen else ():
        if seen.get(task.pk, task.seq) != task.seq:  # type: ignore[union-attr]
            raise _changed(task, task)


def refuse_redriven(task: ScheduledTask, later: Revision, seen: Seen | None) -> None:
    """
    Raise ``ChangedSince`` if an ended task was redriven since it was seen, with the latest revision. Its row does not tell.
    """
    if seen and task.pk in seen and later.revision > task.revision:
        raise _changed(task, later, remedy=_("It was redriven; look at its latest revision."))


def _check(seen: Seen | None) -> None:
    if seen is None:
        return
    if not isinstance(seen, Mapping) or not all(isinstance(pk, UUID) and type(seq) is int for pk, seq in seen.items()):
        raise unfit("seen", seen, _("Give ids of tasks as UUIDs, each with the seq that was shown."))


def _changed(task: ScheduledTask, now: Revision, **told: StrOrPromise) -> ChangedSince:
    return ChangedSince(task.pk, now.state, now.scheduled_at, seq=now.seq, actor=now.actor, reason=now.reason, **told)
