"""
Release: end holds, and see to what became due meanwhile. What takes long is done by polls, batch by batch.

Lock order: the hold, then as everywhere, entities, runs, tasks. Nobody else who has any of these asks for a hold's row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Final
from uuid import UUID

from django.db import OperationalError, connections
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.exceptions import AlreadyReleased, InvalidInput, UnknownTask, UnreadableEntity
from timeline.ids import uuid7
from timeline.lifecycle import WAITING, Reason, State, Trigger
from timeline.models import Hold, LogEntry, ScheduledTask, Scope, Then
from timeline.models.facts import zone_of
from timeline.models.hold import HoldQuerySet
from timeline.models.sqlstates import sqlstate_of
from timeline.operations.moving import move_locked
from timeline.operations.reconciling import reconcile_locked
from timeline.payloads import check_text
from timeline.registry import registry
from timeline.store.admitting import let_go
from timeline.store.announcing import announce
from timeline.store.change_columns import MAX_ACTOR, MAX_REASON
from timeline.store.errors import catching
from timeline.store.holds import covers, in_english, tasks_under
from timeline.store.isolating import atomic
from timeline.store.locking import Locked, lock_tasks_with_runs
from timeline.store.polling import AT_ONCE, polling
from timeline.store.writing import Write, apply
from timeline.timing import LATEST

logger = logging.getLogger("timeline")

BATCH: Final = 500
LET_GO: Final = 10  # Times as many, where tasks are let in past a brake: none of them is locked.
A_TURN: Final = 0.2  # Seconds of a poll; then it goes on with what is due, and the next poll goes on with this.

_AT_REST: Final = sorted({State.SCHEDULED, State.AVAILABLE, State.PENDING, State.RETRYABLE})
_MOST: Final = LATEST - timedelta(seconds=1)


def release(*, hold_id: UUID, actor: str = "", reason: str = "", now: datetime, using: str) -> Hold:
    """
    End a hold. With ``run`` it is over at once, and what is due runs. Otherwise polls see to its tasks first, in batches, and
    nothing of it runs until they have: ``shift`` moves what is not being run on by how long it was held, ``expire`` cancels
    what is due.

    What a brake has put on hold is a person's to release, and they say why. What is due by then is let go: the brake does not
    count it again. Of very many, polls let go what this leaves, and nothing of the kind runs until they have.

    Args:
        hold_id: Its primary key.
        actor: Who decided; of a brake needed.
        reason: Why, shown to people; 200 characters at most; of a brake needed.
        now: Story time of the decision: what was held counts until then.
        using: Database alias.

    Raises:
        Hold.DoesNotExist: if it is not there.
        AlreadyReleased: if somebody has released it, or its time has come and polls see to its tasks.
        InvalidInput: for ``actor`` or ``reason``.
    """
    check_text("actor", actor, MAX_ACTOR)
    check_text("reason", reason, MAX_REASON)
    with atomic(using=using):
        row = Hold.objects.using(using).select_for_update(no_key=True).get(pk=hold_id)
        if row.lifted_at is not None:
            raise AlreadyReleased(row.pk, row.lifted_at)
        if row.is_by_brake:
            _check_person(actor, reason)
        row.lifted_at = now if row.until is None else min(now, row.until)
        row.released_by = actor
        row.release_reason = reason
        row.released_at = now if row.then == Then.RUN else None
        if row.is_by_brake:
            row.place = uuid7()
            row.settled, is_last = _let_go(row, BATCH, using)
            row.released_at = now if is_last else None
        named = ["lifted_at", "released_by", "release_reason", "released_at", "place", "settled"]
        row.save(using=using, update_fields=named)
        announce(using=using)
    return row


def _let_go(hold: Hold, size: int, using: str) -> tuple[int, bool]:
    """
    Let in some of what was there and due when somebody released what a brake has put on hold.

    Returns:
        How many; and whether no other is left.
    """
    if hold.lifted_at is None or hold.place is None:
        return 0, True
    most = size * LET_GO
    done = let_go(hold.target, at=hold.lifted_at, made_before=hold.place, most=most, using=using)
    return done, done < most


def _check_person(actor: str, reason: str) -> None:
    remedy = _("What a brake has stopped is a person's to release: say who decided, and why.")
    for name, text in (("reason", reason), ("actor", actor)):
        if not text.strip():
            raise InvalidInput(name, _("is missing."), remedy)


def release_due(*, now: datetime, using: str) -> int:
    """
    Release what has come to its time, and go on with what is being released, for a part of a poll at most. Safe in any number
    of copies at once.

    What a batch does is committed with where it came to: killed in the middle, another poll goes on from there. What somebody
    else has locked is waited for by later polls.

    Args:
        now: Story time.
        using: Database alias.

    Returns:
        How many tasks were moved on or cancelled.
    """
    over = Hold.objects.using(using).over(now)
    if not over.exists():
        return 0
    _lift(over, now=now, using=using)
    give_up, settled = monotonic() + A_TURN, 0
    for hold_id in list(over.oldest_first().values_list("pk", flat=True)[:BATCH]):
        size = BATCH
        while size and monotonic() < give_up:
            done, size = _try(hold_id, size, now=now, using=using)
            settled += done
    return settled


def _lift(over: HoldQuerySet, *, now: datetime, using: str) -> None:
    """
    End those whose time has come, and let go of what is to run then. Past those that somebody has locked, who releases one
    perhaps: polls wait for nobody.
    """
    with polling(using):
        held = list(over.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True))
        rows = Hold.objects.using(using).filter(pk__in=held)
        rows.filter(lifted_at=None).update(lifted_at=F("until"))
        if rows.filter(then=Then.RUN, park_above=None).update(released_at=now):
            announce(using=using)


def _try(hold_id: UUID, size: int, *, now: datetime, using: str) -> tuple[int, int]:
    """
    See to a batch.

    Returns:
        How many tasks were changed; and how many to take next: fewer, if some were locked, 0, if it is over.
    """
    caught: list[Exception] = []
    with catching(caught), polling(using, AT_ONCE):
        return _settle_some(hold_id, size, now=now, using=using)
    if isinstance(caught[0], OperationalError) and sqlstate_of(caught[0]) in ("55P03", "40P01"):
        if size == 1:
            logger.info("The hold %s is released when what it is about is not locked.", hold_id)
        return 0, size // 2
    if not connections[using].is_usable():
        raise caught[0]
    # Polls go on: what is not held must not wait for it.
    logger.error("The hold %s cannot be released now; later polls try again.", hold_id, exc_info=caught[0])
    return 0, 0


def _settle_some(hold_id: UUID, size: int, *, now: datetime, using: str) -> tuple[int, int]:
    rows = Hold.objects.using(using).open().filter(pk=hold_id)
    hold = rows.select_for_update(no_key=True, skip_locked=True).first()
    if hold is None or hold.lifted_at is None:
        return 0, 0
    if hold.is_by_brake:
        place = hold.place
        done, is_last = _let_go(hold, size, using)
    else:
        ids = _next_ids(hold, size, using)
        place, is_last = ids[-1] if ids else hold.place, len(ids) < size
        done = _see_to(hold, ids, now=now, using=using) if ids else 0
    rows.update(place=place, settled=F("settled") + done, released_at=now if is_last else None)
    if is_last:
        announce(using=using)
    return done, 0 if is_last else size


def _see_to(hold: Hold, ids: Sequence[UUID], *, now: datetime, using: str) -> int:
    tasks, locked = lock_tasks_with_runs(ids, using=using)
    waiting = [task for task in tasks if task.state in _AT_REST]
    settle: Callable[..., int] = _shift if hold.then == Then.SHIFT else _expire
    return settle(hold, waiting, locked, now=now, using=using)


def _next_ids(hold: Hold, size: int, using: str) -> list[UUID]:
    """The next few in order of their ids: those that were there when it was lifted, so not what this makes of them."""
    tasks = tasks_under(hold, ScheduledTask.objects.using(using).filter(state__in=_AT_REST))
    tasks = tasks.filter(created_at__lt=hold.lifted_at)
    if hold.place is not None:
        tasks = tasks.filter(pk__gt=hold.place)
    if hold.then == Then.EXPIRE:
        tasks = tasks.filter(scheduled_at__lte=hold.lifted_at)
    # Of all there is, or a queue, in the order of the primary key; of less, found by its own index and then sorted.
    tasks = tasks.order_by("pk") if hold.scope in (Scope.EVERYTHING, Scope.QUEUE) else tasks.by_id()
    return list(tasks.values_list("pk", flat=True)[:size])


def _expire(hold: Hold, tasks: Sequence[ScheduledTask], locked: Locked, *, now: datetime, using: str) -> int:
    reason = _reason(hold, reasons.DUE_ON_HOLD)
    writes = [
        Write(task=task, triggers=(Trigger.CANCEL,), reason=reason)
        for task in tasks
        if hold.lifted_at is not None and task.scheduled_at <= hold.lifted_at
    ]
    done = apply(writes, now=now, using=using)
    reconcile_locked(locked.runs, locked.entities, now=now, using=using, lenient=True)
    return len(done)


def _shift(hold: Hold, tasks: Sequence[ScheduledTask], locked: Locked, *, now: datetime, using: str) -> int:
    # Read once the tasks are locked: another hold that has seen to one of them has committed that.
    holds = Hold.objects.using(using).filter(then=Then.SHIFT).exclude(pk=hold.pk)
    others = [*holds.filter(lifted_at__gt=hold.created_at), *holds.over(now).exclude(lifted_at__gt=hold.created_at)]
    since = _there_since(tasks, using)
    places = []
    for task in tasks:
        over = [other for other in others if covers(other, task)]
        counted = [_span(other) for other in over if _is_counted(other, task, since[task.pk])]
        spans = [_span(hold)]
        if task.state not in WAITING:  # Its next revision comes too late for those that have not seen to it yet.
            spans += [_span(other) for other in over if not _is_counted(other, task, since[task.pk])]
        length = timedelta(0)
        for first, last in spans:
            length += lost(max(first, since[task.pk]), last, counted)
            counted.append((first, last))
        if length:
            places.append((task, min(_within_hours(task, task.scheduled_at + length, locked), _MOST)))
    move_locked(places, reason=_reason(hold, reasons.SHIFTED), now=now, using=using, sticks=False)
    return len(places)


def _there_since(tasks: Sequence[ScheduledTask], using: str) -> dict[UUID, datetime]:
    """
    Since when each of some tasks has been there: a revision that a hold has made stands for the one before it. Two statements
    for each revision that holds have made of one of them; one, if a task has an earlier revision, and none else.
    """
    since = {task.pk: task.created_at for task in tasks}
    made_of = {task.previous_id: task.pk for task in tasks if task.previous_id is not None}
    while made_of:
        ends = LogEntry.objects.using(using).filter(task__in=list(made_of), to_state=State.CANCELLED)
        shifted = ends.filter(detail__said__sentence=reasons.SHIFTED.name).values_list("task", flat=True)
        rows = ScheduledTask.objects.using(using).filter(pk__in=list(shifted)).only("created_at", "previous_id")
        since |= {made_of[row.pk]: row.created_at for row in rows}
        made_of = {row.previous_id: made_of[row.pk] for row in rows if row.previous_id is not None}
    return since


def _within_hours(task: ScheduledTask, at: datetime, locked: Locked) -> datetime:
    """What was due within its window stays so: it is due when that opens next."""
    with suppress(UnknownTask, UnreadableEntity, InvalidInput):
        definition, declared = registry.task(task.task_key)
        hours, zone = declared.options.window, zone_of(definition, locked.entities.get(task.entity_ref))
        if hours is not None and task.run_id is not None and hours.is_open(task.scheduled_at, zone):
            return hours.next_open(at, zone)
    return at


def _span(hold: Hold) -> tuple[datetime, datetime]:
    """When it held. It is lifted, or its time has come."""
    return hold.created_at, hold.lifted_at or hold.until or hold.created_at


def _is_counted(hold: Hold, task: ScheduledTask, since: datetime) -> bool:
    """
    Whether its time is in the due time of a task already, as far as the task was its business: it has moved the task on, or
    another hold has made this revision when the time of both was over.
    """
    if not hold.is_open or (hold.place is not None and hold.place >= task.pk):
        return True
    return since < task.created_at and _span(hold)[1] <= task.created_at


def _reason(hold: Hold, said: reasons.Sentence) -> Reason:
    reason = said(what=in_english(hold), first=hold.created_at, last=hold.lifted_at)
    return replace(reason, actor=hold.released_by)


def lost(first: datetime, last: datetime, counted: Iterable[tuple[datetime, datetime]]) -> timedelta:
    """
    Say how much of a span of time is not counted yet.

    Args:
        first, last: The span.
        counted: Spans that are, in any order; they may overlap.
    """
    length, at = timedelta(0), first
    for begun, ended in sorted(counted):
        length += max(min(begun, last) - at, timedelta(0))
        at = max(at, min(ended, last))
    return length + max(last - at, timedelta(0))
