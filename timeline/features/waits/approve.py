"""Approve and reject: record a person's decision about a task that waits for one, as an event of its entity."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.clocks import story_now
from timeline.exceptions import AlreadyDecided, DecidedTooLate, InvalidInput, TimelineError, TransitionNotAllowed
from timeline.features.waits.sentences import CAME
from timeline.features.waits.store import declared_wait, first_met
from timeline.lifecycle import FINAL, WAITING, Reason, Trigger
from timeline.models import EntityRef, Event, ScheduledTask
from timeline.models.entities import kinds_of
from timeline.operations.emit import emit
from timeline.operations.seen import Seen, refuse_changed
from timeline.registry import registry
from timeline.store.locks import lock_tasks
from timeline.store.signal_dispatch import announce
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

if TYPE_CHECKING:
    from timeline.timing import When


_ASKED_FOR: Final = (pgettext_lazy("timeline", "approve"), pgettext_lazy("timeline", "reject"))  # As refusals say it.
MOST: Final = 100  # Tasks of an entity that one event may decide about, the newest.


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
        verb, name = ("approve", when.approval.approved) if approved else ("reject", when.approval.rejected)
        until = _refuse_decided(task, when, verb, using=using)
        refuse_changed([task], seen)
        now = now or story_now(using)
        _refuse_late(task, until, now)
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


def refuse_decided(*, event: str, key: str, ref: EntityRef, using: str) -> None:
    """
    Refuse an event that approves or rejects tasks of an entity if none waits for it any more, as ``decide_approval`` does.

    The caller emits it in the same transaction, in which these tasks stay locked. Not refused: what was recorded with this key,
    and what an entity has no task for.

    Raises:
        AlreadyDecided, DecidedTooLate, TransitionNotAllowed: as of the newest of them.
    """
    kinds = [task_key for _known, task_key in registry.approvals(event, kinds_of(ref.label))]
    about = Event.objects.using(using).for_entity(ref)
    if not kinds or (key and about.filter(name=event, key=key).exists()):
        return
    tasks = ScheduledTask.objects.using(using).for_entity(ref).with_handler(kinds).filter(run__isnull=False)
    ids = list(tasks.order_by("-pk").values_list("pk", flat=True)[:MOST])
    refusals: list[TimelineError] = []
    now = None
    for task in lock_tasks(ids, using=using) if ids else ():
        now = now or story_now(using)
        try:
            _refuse_waiting_no_more(task, event, now, using=using)
        except (AlreadyDecided, DecidedTooLate, TransitionNotAllowed) as error:
            refusals.append(error)
        else:
            return
    if refusals:
        raise refusals[0]


def _refuse_waiting_no_more(task: ScheduledTask, event: str, now: datetime, *, using: str) -> None:
    when = registry.task(task.task_key)[1].when
    assert when is not None  # noqa: S101 (the registry has named it for its approval)
    assert when.approval is not None  # noqa: S101
    verb = "approve" if event == when.approval.approved else "reject"
    _refuse_late(task, _refuse_decided(task, when, verb, using=using), now)


def _refuse_decided(task: ScheduledTask, when: When, verb: str, *, using: str) -> datetime:
    """Refuse a task about which somebody has decided, or that has ended. Gives until when a decision counts."""
    wait = declared_wait(task, when, using=using)
    if (decided := first_met(wait, using=using)) is not None:
        raise AlreadyDecided(task.pk, decided.name, decided.actor, decided.recorded_at)
    if task.state in FINAL:
        raise TransitionNotAllowed(task.state, verb, _("It has ended, and waits for nothing."), task.pk)
    return wait.until


def _refuse_late(task: ScheduledTask, until: datetime, now: datetime) -> None:
    if now >= until:
        raise DecidedTooLate(task.pk, until)


def _due_now(task_id: UUID, event: str, *, now: datetime, using: str) -> ScheduledTask:
    """Make the task due if the event did not: its row was made when the events that it waits for had other names."""
    task = ScheduledTask.objects.using(using).select_related("run").get(pk=task_id)
    if task.state not in WAITING or task.scheduled_at <= now:
        return task
    announce(using=using)
    [woken] = apply(
        [Write(task=task, triggers=(Trigger.DUE,), scheduled_at=now, reason=CAME(event=event))],
        now=now,
        using=using,
    )
    return woken
