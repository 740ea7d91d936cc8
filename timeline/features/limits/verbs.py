"""Open: free a limit key that an unfinished task keeps closed, so that other tasks can use it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.definition.names import MAX_KEY
from timeline.exceptions import InvalidInput
from timeline.features.limits.keys import give_up_places
from timeline.lifecycle import Reason
from timeline.models import Opening, ScheduledTask
from timeline.payloads import check_text, clip, unfit
from timeline.store.changes import MAX_ACTOR, MAX_REASON
from timeline.store.signal_dispatch import announce
from timeline.store.transactions import atomic


def open_limit(
    *, key: str, reason: Reason, seen: Collection[UUID] | None = None, now: datetime, using: str
) -> list[ScheduledTask]:
    """
    Open a key: tasks that were started and did not complete give up the places that they keep closed.

    The person who opens it has checked what these tasks left half done. To continue one of them, redrive it instead: it keeps
    its place.

    Args:
        key: The key that tasks compete for, the ``limit_key`` of a task.
        reason: Why, and who decided; kept in ``Opening``, one row for each task.
        seen: Ids of the tasks that were shown to the person. Other tasks keep their places. None: all tasks give up theirs.

    Returns:
        The tasks that kept it closed.

    Raises:
        InvalidInput: naming ``key``, if it is not closed, or only by tasks that are not in ``seen``. Naming ``reason``, if it
            is empty; or ``seen``, if it is of another kind. Nothing is changed then.
    """
    check_text("key", key, MAX_KEY)
    if not reason.text.strip():
        raise InvalidInput("reason", _("is empty."), _("Say why it is opened."))
    if seen is not None and not (isinstance(seen, Collection) and all(isinstance(pk, UUID) for pk in seen)):
        raise unfit("seen", seen, _("Give ids of tasks as UUIDs."))
    with atomic(using=using):
        rows = ScheduledTask.objects.using(using).filter(limit_key=key).closing()
        tasks = list(rows.by_id().locked())
        if not tasks:
            raise InvalidInput(
                "key", _("%(key)r is not closed."), _("See timeline_limits for those that are."), key=key
            )
        if seen is not None and not (tasks := [task for task in tasks if task.pk in seen]):
            problem = _("%(key)r is closed by other tasks than you have seen.")
            raise InvalidInput("key", problem, _("Look again, and see to what they left half done."), key=key)
        Opening.objects.using(using).bulk_create(
            Opening(
                limit_key=key,
                task_key=task.task_key,
                task_id=task.pk,
                slot=task.slot,
                opened_at=now,
                reason=clip(reason.text, MAX_REASON),
                actor=clip(reason.actor, MAX_ACTOR),
            )
            for task in tasks
        )
        give_up_places(tasks, using=using)
        announce(using=using)
    return tasks
