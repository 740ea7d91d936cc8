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
    Refuse to go on if one of the tasks has changed since it was seen.

    Args:
        tasks: The tasks. The caller has locked them, so that they stay as they are until the decision is written.
        seen: What was shown; None: nothing is checked.

    Raises:
        InvalidInput: if ``seen`` is of another kind: ids that are text would be checked for no task.
        ChangedSince: naming the first task that has changed.
    """
    _check(seen)
    for task in tasks if seen else ():
        if seen.get(task.pk, task.seq) != task.seq:  # type: ignore[union-attr]
            raise _changed(task, task)


def refuse_redriven(task: ScheduledTask, later: Revision, seen: Seen | None) -> None:
    """
    Refuse to redrive a task that was redriven since it was seen. Its own row does not tell this.

    Args:
        task: A task that has ended.
        later: Its latest revision, which may be the task itself.
        seen: As for ``refuse_changed``.

    Raises:
        ChangedSince: with the latest revision as it is now.
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
