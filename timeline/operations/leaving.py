"""Leave: end runs before they are finished; what is still open is cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.definition.checking import FINISHED
from timeline.exceptions import InvalidInput, NoOpenRun
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import EntityRef, ScheduledTask, TimelineRun, ref_of
from timeline.operations._current import running
from timeline.operations._locking import lock_entity
from timeline.operations._transition import MAX_REASON, Write, apply
from timeline.payloads import check_text
from timeline.registry import registry


def leave(
    *, timeline: str, entity: Model | EntityRef | None, key: str, reason: str, actor: str, now: datetime, using: str
) -> TimelineRun:
    """
    End the open run of an entity by hand.

    Args:
        timeline: Its name.
        entity: Whose run; None for a system timeline.
        key: Of the run; empty unless it was started with one.
        reason: Shown on the run and on each task it cancels.
        actor: Who decided; empty for the system itself.
        now: Story time.
        using: Database alias of the entity.

    Returns:
        The run, ended.

    Raises:
        InvalidInput: if the reason is empty, longer than 200 characters, or the word for a run that has nothing left.
        UnknownTimeline: if there is none of this name.
        NoOpenRun: if there is none.
        WrongEntity: if the entity is not in this database.
    """
    check_text("reason", reason, MAX_REASON, least=1)
    if reason == FINISHED:
        problem = _("%(word)r is what a run that has nothing left says.")
        raise InvalidInput("reason", problem, _("Give another reason."), word=FINISHED)
    ref = ref_of(entity, registry.timeline(timeline).label)
    with transaction.atomic(using=using):
        lock_entity(ref, using=using)
        run = TimelineRun.objects.using(using).open().for_entity(ref).filter(timeline=timeline, key=key).first()
        if run is None:
            raise NoOpenRun(timeline, str(ref), key)
        end_runs([run], reason=Reason(ReasonCode.EXIT, reason, actor), now=now, using=using)
    return run


def end_runs(runs: Sequence[TimelineRun], *, reason: Reason, now: datetime, using: str) -> list[ScheduledTask]:
    """
    End open runs whose entities the caller has locked, and cancel what is open of them.

    The task being run right now is spared: it records its own outcome.

    Args:
        runs: Any number.
        reason: Its text, or else its code, becomes the end reason of the runs.
        now: Story time.
        using: Database alias.

    Returns:
        The tasks cancelled.
    """
    if not runs:
        return []
    ids = [run.pk for run in runs]
    list(TimelineRun.objects.using(using).filter(pk__in=ids).locked().values_list("pk"))
    open_tasks = ScheduledTask.objects.using(using).open().filter(run__in=ids).exclude(pk__in=running())
    writes = [Write(task=task, triggers=(Trigger.CANCEL,), reason=reason) for task in open_tasks.by_id().locked()]
    cancelled = apply(writes, now=now, using=using)
    end_reason = (reason.text or reason.code.value)[:MAX_REASON]
    TimelineRun.objects.using(using).filter(pk__in=ids).update(ended_at=now, end_reason=end_reason)
    for run in runs:
        run.ended_at, run.end_reason = now, end_reason
    return cancelled
