"""Approve and reject: record a person's decision about a task that waits for one, as an event of its entity."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.clocks import story_now
from timeline.exceptions import AlreadyDecided, DecidedTooLate, InvalidInput, TransitionNotAllowed
from timeline.lifecycle import FINAL, WAITING, Reason, Trigger
from timeline.models import ScheduledTask
from timeline.operations._seen import Seen, refuse_changed
from timeline.operations.emitting import emit
from timeline.registry import registry
from timeline.store.announcing import announce
from timeline.store.isolating import atomic
from timeline.store.locking import lock_tasks
from timeline.store.waiting import declared_wait, first_met
from timeline.store.writing import Write, apply


def decide_approval(
    *,
    task_id: UUID,
    approved: bool,
    reason: Reason,
    now: datetime | None = None,
    using: str,
    seen: Seen | None = None,
) -> ScheduledTask:
    """
    Say yes or no to a task that asks for approval. This emits the event that the task waits for, which makes it due at once.

    Everything happens under the lock of the entity: of two decisions, the first counts. The caller has checked who may decide.

    Args:
        task_id: A task of a run, declared with ``approval``.
        approved: Yes or no.
        reason: Text shown to people, kept in the event's payload as ``reason``, and the actor who decided.
        now: Story time of the decision; None: it is read when the entity is locked.
        using: Database alias the task lives in.
        seen: Task id → its ``seq`` when it was shown to the person; None: nothing is checked.

    Returns:
        The task, due now.

    Raises:
        ScheduledTask.DoesNotExist: if it is not there.
        InvalidInput: if it asks for no approval.
        AlreadyDecided: if somebody has decided, naming that person.
        DecidedTooLate: if the time for a decision is over.
        ChangedSince: if the task has changed since it was seen.
        TransitionNotAllowed: if it has ended without a decision. Nothing is written in any of these cases.
    """
    with atomic(using=using):
        [task] = lock_tasks([task_id], using=using)
        when = registry.task(task.task_key)[1].when
        if when is None or when.approval is None or task.run is None:
            remedy = _("Declare it with approval(…), or emit the event that it waits for.")
            raise InvalidInput("task", _("%(task)s asks for no approval."), remedy, task=task.full_key)
        wait = declared_wait(task, when, using=using)
        if (decided := first_met(wait, using=using)) is not None:
            raise AlreadyDecided(task.pk, decided.name, decided.actor, decided.recorded_at)
        verb, name = ("approve", when.approval.approved) if approved else ("reject", when.approval.rejected)
        if task.state in FINAL:
            raise TransitionNotAllowed(task.state, verb, _("It has ended, and waits for nothing."), task.pk)
        refuse_changed([task], seen)
        now = now or story_now(using)
        if now >= wait.until:
            raise DecidedTooLate(task.pk, wait.until)
        said = {"reason": reason.text} if reason.text else {}
        emit(
            name=name,
            entity=task.entity_ref if task.entity_label else None,
            key="",
            payload=said,
            actor=reason.actor,
            occurred_at=None,
            now=now,
            using=using,
        )
        return _due_now(task_id, name, now=now, using=using)


def _due_now(task_id: UUID, event: str, *, now: datetime, using: str) -> ScheduledTask:
    """Make the task due if the event did not: its row was made when the events that it waits for had other names."""
    task = ScheduledTask.objects.using(using).select_related("run").get(pk=task_id)
    if task.state not in WAITING or task.scheduled_at <= now:
        return task
    announce(using=using)
    [waked] = apply(
        [Write(task=task, triggers=(Trigger.DUE,), scheduled_at=now, reason=reasons.CAME(event=event))],
        now=now,
        using=using,
    )
    return waked
