"""Decide: continue a task that waits because only a person knows whether one of its steps happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.exceptions import InvalidInput
from timeline.lifecycle import Reason, State, Trigger, target
from timeline.models import ScheduledTask, StepKind, StepRecord
from timeline.models.task_records import origins_of, steps_among
from timeline.operations.seen import Seen, refuse_changed
from timeline.payloads import check_is_text, check_json
from timeline.store.locks import lock_tasks
from timeline.store.signal_dispatch import announce
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

Decision = Callable[[dict[str, StepRecord]], object]


def step_happened(
    *,
    task_id: UUID,
    step: str,
    result: object,
    reason: Reason,
    now: datetime,
    using: str,
    seen: Seen | None = None,
) -> ScheduledTask:
    """
    Say that a step that was begun has happened, and give its result. The task continues after it at once.

    Args:
        task_id: A task that waits to be tried again.
        step: Name of the step, with its key.
        result: What the step would have returned: JSON.
        reason: Text shown to people, and who decided.
        seen: Task id → its ``seq`` when it was shown to the person who decides; None: nothing is checked.

    Returns:
        The task, in state ``available``.

    Raises:
        ScheduledTask.DoesNotExist: if it is not there.
        ChangedSince: if it has changed since it was seen.
        TransitionNotAllowed: if it does not wait.
        InvalidInput, NotPlainJSON, PayloadTooLarge: naming ``step`` or ``result``. Nothing is changed in any of these cases.
    """
    check_is_text("step", step)
    check_json("result", result)

    def note(records: dict[str, StepRecord]) -> None:
        record = _named(records, step)
        if record.kind != StepKind.BEGUN:
            raise InvalidInput(
                "step", _("%(step)s is not in doubt."), _("Nothing has to be decided about it."), step=step
            )
        record.kind, record.result = StepKind.DONE, json.loads(json.dumps(result))
        record.save(using=using, update_fields=["kind", "result"])

    return _decide("step happened", task_id, note, reason=reason, now=now, using=using, seen=seen)


def forget_step(
    *, task_id: UUID, step: str, reason: Reason, now: datetime, using: str, seen: Seen | None = None
) -> ScheduledTask:
    """
    Forget that a step was done or begun: it is done again when the task continues, at once.

    Args:
        task_id, step, reason, now, using, seen: As for ``step_happened``.

    Returns:
        The task, in state ``available``.

    Raises:
        As for ``step_happened``.
    """

    check_is_text("step", step)

    def forget(records: dict[str, StepRecord]) -> None:
        _named(records, step).delete(using=using)

    return _decide("forget step", task_id, forget, reason=reason, now=now, using=using, seen=seen)


def go_on(*, task_id: UUID, reason: Reason, now: datetime, using: str, seen: Seen | None = None) -> ScheduledTask:
    """
    Let a task continue whose code has changed since some of its steps were done: these steps count in any order.

    Args:
        task_id, reason, now, using, seen: As for ``step_happened``.

    Returns:
        The task, in state ``available``.

    Raises:
        As for ``step_happened``; also InvalidInput, if it is not known whether a step happened.
    """

    def accept(records: dict[str, StepRecord]) -> None:
        if begun := [name for name, record in records.items() if record.kind == StepKind.BEGUN]:
            problem, remedy = _("%(step)s may have happened."), _("Say that it happened, or forget it.")
            raise InvalidInput("step", problem, remedy, step=begun[0])
        for record in records.values():
            record.code = ""
        StepRecord.objects.using(using).bulk_update(records.values(), ["code"])

    return _decide("go on", task_id, accept, reason=reason, now=now, using=using, seen=seen)


def _decide(
    verb: str,
    task_id: UUID,
    decision: Decision,
    *,
    reason: Reason,
    now: datetime,
    using: str,
    seen: Seen | None,
) -> ScheduledTask:
    with atomic(using=using):
        [task] = tasks = lock_tasks([task_id], using=using)
        refuse_changed(tasks, seen)
        target(State(task.state), Trigger.DUE, task=task.pk, verb=verb)
        origin = origins_of({task.id: task.previous_id}, using=using)[task.id]
        records = steps_among([origin], using=using)
        if not records:
            raise InvalidInput(
                "task", _("has no step that is done or begun."), _("Nothing has to be decided about it.")
            )
        decision({record.name: record for record in records})
        announce(using=using)
        due = Write(task=task, triggers=(Trigger.DUE,), scheduled_at=min(now, task.scheduled_at), reason=reason)
        return apply([due], now=now, using=using)[0]


def _named(records: dict[str, StepRecord], step: str) -> StepRecord:
    if step not in records:
        known = ", ".join(records) or pgettext_lazy("timeline", "none")
        problem, remedy = _("%(step)r is not recorded."), _("Recorded are: %(known)s.")
        raise InvalidInput("step", problem, remedy, step=step, known=known)
    return records[step]
