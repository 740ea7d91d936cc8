"""The wait of a task: for which events, of which entity, since when, until when, and who may decide."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _

from timeline.exceptions import UnknownTask
from timeline.lifecycle import WAITING, ReasonCode
from timeline.models import EntityRef, LogEntry, ScheduledTask
from timeline.registry import registry
from timeline.store.waiting import Wait, declared_wait, first_met, open_wait
from timeline.timing import Approval, When, in_utc


class WaitLine(NamedTuple):
    """
    A wait that is not over.

    Args:
        events: Names of events; the first event with one of these names ends the wait.
        key: Key that the event must have; empty: any.
        entity: The entity whose events count; None: the system.
        since, until: When it began, and when the task goes on without an event.
        permission: Permission of people who may approve or reject; empty: nobody is asked.
    """

    events: list[str]
    key: str
    entity: EntityRef | None
    since: datetime
    until: datetime
    permission: str


def wait_of(task: ScheduledTask, *, using: str) -> WaitLine | None:
    """
    Read for which events a task waits now; None: for none. Two statements, if it waits.

    ``until`` is the deadline of the wait. The task may be due at another time, if somebody has moved it.
    """
    if not task.awaits or task.state not in WAITING:
        return None
    rested = LogEntry.objects.using(using).filter(task=task, reason_code=ReasonCode.WAITING).order_by("-seq").first()
    approval, wait = approval_under_way(task), _wait_of(task, using)
    return WaitLine(
        events=task.awaits.split(),
        key=task.awaits_key,
        entity=EntityRef(task.awaits_label, task.awaits_id) if task.awaits_label else None,
        since=rested.at if rested else task.created_at,
        until=wait.until if wait else task.scheduled_at,
        permission=approval.by if approval else "",
    )


def _wait_of(task: ScheduledTask, using: str) -> Wait | None:
    """The recorded wait of its handler, or else the wait of its schedule, if this process knows it."""
    if task.attempt and (wait := open_wait(task, using=using)) is not None:
        return wait
    when = _when_of(task)
    return declared_wait(task, when, using=using) if when is not None and when.awaits else None


def _when_of(task: ScheduledTask) -> When | None:
    try:
        return registry.task(task.task_key)[1].when if task.run_id else None
    except UnknownTask:
        return None


def approval_under_way(task: ScheduledTask) -> Approval | None:
    """The question that is asked now, as far as this process knows. If a handler waits after an approval, nothing is asked."""
    when = _when_of(task) if task.state in WAITING else None
    approval = when.approval if when is not None else None
    return approval if approval is not None and approval.approved in task.awaits.split() else None


def who_decides(task: ScheduledTask) -> str:
    """Say who has to decide about a waiting task, and until when; empty: nobody is asked."""
    approval = approval_under_way(task)
    if approval is None:
        return ""
    said = {"permission": approval.by, "at": in_utc(task.nominal_at)}
    return _("Somebody with the permission %(permission)s is to approve or reject it, until %(at)s.") % said


def not_to_decide(task: ScheduledTask) -> str:
    """Say why nobody can approve or reject it any more: who has decided, or that it is too late."""
    using = task._state.db or DEFAULT_DB_ALIAS
    when = registry.task(task.task_key)[1].when
    decided = None if when is None else first_met(declared_wait(task, when, using=using), using=using)
    if decided is None:
        return _("Nobody decided about it in time, or it has ended.")
    said = {"event": decided.name, "actor": decided.actor, "at": in_utc(decided.recorded_at)}
    if decided.actor:
        return _("It was decided already: %(event)s by %(actor)s, %(at)s.") % said
    return _("It was decided already: %(event)s, %(at)s.") % said
