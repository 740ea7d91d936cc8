"""Verbs that put tasks on hold, and release them."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, router
from django.utils.translation import gettext_lazy as _

from timeline.clocks import story_now
from timeline.exceptions import InvalidInput
from timeline.models import EntityRef, Hold, ScheduledTask, Scope
from timeline.operations import holding, releasing
from timeline.payloads import check_flag, unfit
from timeline.registry import registry
from timeline.shortcuts._named import alias_of

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Timeline


def hold(
    entity: Model | EntityRef | None = None,
    *,
    task: str = "",
    timeline: str | type[Timeline] = "",
    queue: str = "",
    everything: bool = False,
    until: datetime | None = None,
    then: str = "run",
    reason: str,
    actor: str = "",
    using: str | None = None,
) -> Hold:
    """
    Stop the tasks of an entity, of a kind, of a timeline, of a queue, or all tasks, until a time or until it is released.

    Args:
        entity, task, timeline, queue, everything: One of them. ``task`` is a key, ``trial.remind``.
        until, reason, actor: See ``timeline.operations.holding.hold``, also for errors.
        then: What happens when it ends: ``run`` due tasks, ``shift`` all tasks by the time that they were held, or ``expire``
            due tasks.
        using: Database alias.
    """
    check_flag("everything", everything)
    targets = {
        Scope.ENTITY: entity is not None,
        Scope.TASK: bool(task),
        Scope.TIMELINE: bool(timeline),
        Scope.QUEUE: bool(queue),
        Scope.EVERYTHING: everything,
    }
    scopes = [scope for scope, is_given in targets.items() if is_given]
    if len(scopes) != 1:
        problem = _("it has to be said what to hold, and one thing only.")
        raise InvalidInput("hold", problem, _("Give an entity, task=, timeline=, queue= or everything=True."))
    if not isinstance(entity, EntityRef):
        using = using or (alias_of(entity) if entity is not None else None)
    using = using or router.db_for_write(ScheduledTask)
    name = registry.timeline(timeline).name if timeline else ""
    return holding.hold(
        scope=scopes[0],
        target=task or name or queue,
        entity=entity,
        until=until,
        then=then,
        reason=reason,
        actor=actor,
        now=story_now(using),
        using=using,
    )


def release(hold: Hold | UUID, *, actor: str = "", reason: str = "", using: str | None = None) -> Hold:
    """End a hold. See ``timeline.operations.releasing.release`` for what happens to its tasks, and for errors."""
    if isinstance(hold, Hold):
        using = using or hold._state.db or DEFAULT_DB_ALIAS
    hold_id = hold.pk if isinstance(hold, Hold) else _as_id(hold)
    using = using or router.db_for_write(ScheduledTask)
    return releasing.release(hold_id=hold_id, actor=actor, reason=reason, now=story_now(using), using=using)


def _as_id(hold: object) -> UUID:
    """
    The id of a hold, which may be given as text.

    Raises:
        InvalidInput: naming ``hold``.
    """
    with suppress(ValueError):
        if isinstance(hold, UUID | str):
            return UUID(str(hold))
    raise unfit("hold", hold, _("Give a hold, or its id as a UUID."))
