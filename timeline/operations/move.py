"""Move: give tasks another time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import DateOutOfRange, InvalidInput
from timeline.hooks import hooks
from timeline.lifecycle import WAITING, Reason, ReasonCode, State, Trigger, target
from timeline.models import ScheduledTask
from timeline.operations.current import refuse_own
from timeline.operations.seen import Seen, refuse_changed
from timeline.payloads import unfit
from timeline.planning import Times
from timeline.store.locks import lock_tasks
from timeline.store.new_rows import create_tasks, expiry_at, next_revision
from timeline.store.signal_dispatch import announce
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply
from timeline.timing import check_time
from timeline.timing.offsets import Offset


def move(
    *,
    task_ids: Sequence[UUID],
    at: datetime | None = None,
    by: Offset | None = None,
    reason: Reason,
    now: datetime,
    using: str,
    seen: Seen | None = None,
) -> list[ScheduledTask]:
    """
    Give tasks another time.

    A waiting task moves in place. A task that is due already is cancelled (``moved``), and its next revision takes its place.
    If the anchor of a task changes later, the anchor decides again.

    Args:
        task_ids: Primary keys, any number; all are moved or none.
        at: New due time of all (aware); in the past: due now.
        by: Instead of ``at``: how far each task moves from its own due time, forward or back; days count on the site's clocks.
        reason: Text shown to people, and who decided.
        seen: Task id → its ``seq`` when it was shown to the person who decides; None: nothing is checked.

    Returns:
        The tasks with the new times (the given ones, or their next revisions), in the order given.

    Raises:
        ScheduledTask.DoesNotExist: if one of them is not there.
        ChangedSince: if one of them has changed since it was seen.
        TransitionNotAllowed: if one of them has ended already, or is the task of the handler that calls this.
        NaiveDatetime, DateOutOfRange: for ``at`` or ``by``.
        InvalidInput: if both are given, or none, or ``by`` is something else. Nothing is changed in any of these cases.
    """
    new_time = _checked(at, by)
    with atomic(using=using):
        tasks = lock_tasks(task_ids, using=using)
        refuse_changed(tasks, seen)
        refuse_own(tasks, "move")
        for task in tasks:
            if task.state not in WAITING:
                target(State(task.state), Trigger.CANCEL, task=task.pk, verb="move")
        moved = Reason(ReasonCode.MOVED, reason.text, reason.actor)
        done = move_locked([(task, new_time(task)) for task in tasks], reason=moved, now=now, using=using)
        for tell in hooks().ends:
            tell(done, now=now, using=using)
        return done


def shifted(at: datetime, by: Offset) -> datetime:
    """Add an offset to a due time. Raises ``DateOutOfRange`` for ``by``."""
    try:
        return by.apply(at, timezone.get_default_timezone())
    except DateOutOfRange as error:
        raise DateOutOfRange("by", error.value) from None


def _checked(at: datetime | None, by: Offset | None) -> Callable[[ScheduledTask], datetime]:
    """A function that gives the new time of a task."""
    if by is None and at is not None:
        moment = check_time("at", at)
        return lambda _task: moment
    if by and not isinstance(by, Offset):
        raise unfit("by", by, _("Give a timedelta or an Offset."))
    if by and at is None:
        return lambda task: shifted(task.scheduled_at, by)
    problem = _("it needs either a new time, or how far to move.")
    raise InvalidInput("move", problem, _("Give at=, or by= other than nothing."))


def move_locked(
    places: Sequence[tuple[ScheduledTask, datetime]],
    *,
    reason: Reason,
    now: datetime,
    using: str,
    sticks: bool = True,
) -> list[ScheduledTask]:
    """
    Give locked open tasks new times, as ``move`` does. ``sticks``: a person decided, so the timeline does not change it again.
    """
    waiting = [(task, at) for task, at in places if task.state in WAITING]
    due = [(task, at) for task, at in places if task.state not in WAITING]
    apply([_in_place(task, at, reason, sticks) for task, at in waiting], now=now, using=using)
    successors = {task.pk: next_revision(task, at, now=now) for task, at in due}
    writes = [
        Write(task=task, triggers=(Trigger.CANCEL,), reason=reason, slot=0 if successors[task.pk].slot else None)
        for task, _time in due
    ]
    apply(writes, now=now, using=using)
    create_tasks(list(successors.values()), using=using)
    return [successors.get(task.pk, task) for task, _time in places]


def _in_place(task: ScheduledTask, at: datetime, reason: Reason, sticks: bool) -> Write:
    times = Times(
        nominal_at=task.nominal_at,
        scheduled_at=at,
        anchor=task.anchor,
        anchor_value=task.anchor_value,
        anchor_date=task.anchor_date,
        expires_at=expiry_at(task.task_key, at),
        planned_at=None if sticks else task.planned_at,
    )
    return Write(task=task, times=times, reason=reason)


def run_now(
    *, task_ids: Sequence[UUID], reason: Reason, now: datetime, using: str, seen: Seen | None = None
) -> list[ScheduledTask]:
    """
    Make waiting tasks due at once.

    Args:
        task_ids: Primary keys, any number; all become available or none.
        reason: Text shown to people, and who decided.
        now: Story time of the decision. It becomes the due time of tasks that were due later.
        seen: Task id → its ``seq`` when it was shown to the person who decides; None: nothing is checked.

    Returns:
        The tasks, in state ``available``, in the order given.

    Raises:
        ScheduledTask.DoesNotExist: if one of them is not there.
        ChangedSince: if one of them has changed since it was seen.
        TransitionNotAllowed: if one of them is due already, or has ended; nothing is changed then.
    """
    with atomic(using=using):
        tasks = lock_tasks(task_ids, using=using)
        refuse_changed(tasks, seen)
        for task in tasks:
            target(State(task.state), Trigger.DUE, task=task.pk, verb="run now")
        writes = [
            Write(task=task, triggers=(Trigger.DUE,), scheduled_at=min(now, task.scheduled_at), reason=reason)
            for task in tasks
        ]
        announce(using=using)
        done = apply(writes, now=now, using=using)
        for tell in hooks().ends:
            tell(done, now=now, using=using)
        return done
