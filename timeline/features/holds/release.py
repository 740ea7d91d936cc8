"""
End holds, and deal with tasks that became due meanwhile; long work is done by polls, batch by batch.

Lock order: the hold, then as everywhere entities, runs, tasks. Whoever else has one of these locks never locks a hold.
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

from django.db import OperationalError
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.dialects import sqlstate_of
from timeline.exceptions import AlreadyReleased, InvalidInput, UnknownTask, UnreadableEntity
from timeline.features.holds.sentences import DUE_ON_HOLD, SHIFTED
from timeline.features.holds.store import covers, in_english, let_go, tasks_under
from timeline.ids import uuid7
from timeline.lifecycle import WAITING, Reason, State, Trigger
from timeline.models import Hold, LogEntry, ScheduledTask, Scope, Then
from timeline.models.decisions import HoldQuerySet
from timeline.models.facts import zone_of
from timeline.operations.move import move_locked
from timeline.operations.reconcile import reconcile_locked
from timeline.payloads import check_text
from timeline.registry import registry
from timeline.store.changes import MAX_ACTOR, MAX_REASON
from timeline.store.database_errors import catching, is_usable
from timeline.store.locks import Locked, lock_tasks_with_runs
from timeline.store.poll_queries import AT_ONCE, polling
from timeline.store.signal_dispatch import announce
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply
from timeline.timing import LATEST

logger = logging.getLogger("timeline")

BATCH: Final = 500
LET_GO: Final = 10  # How many times larger a batch is that a brake lets go: none of its tasks is locked.
A_TURN: Final = 0.2  # Seconds of a poll. Then the poll goes on with due tasks, and the next poll goes on with holds.

_AT_REST: Final = sorted({State.SCHEDULED, State.AVAILABLE, State.PENDING, State.RETRYABLE})
_MOST: Final = LATEST - timedelta(seconds=1)


def release(*, hold_id: UUID, actor: str = "", reason: str = "", now: datetime, using: str) -> Hold:
    """
    End a hold. With ``run`` it is over at once, and due tasks run. Otherwise polls first deal with its tasks, in batches, and
    no task of the hold runs until this is done: ``shift`` moves tasks that are not being run by the length of the hold, and
    ``expire`` cancels due tasks.

    A hold that a brake has made can be released only by a person, who says why. Tasks that are due by then are let go: the
    brake does not count them again. If there are very many, polls let go of the rest, and no task of the kind runs until this
    is done.

    Args:
        hold_id: Its primary key.
        actor: Who decided; needed for the hold of a brake.
        reason: Why, shown to people; 200 characters at most; needed for the hold of a brake.

    Raises:
        Hold.DoesNotExist: if it is not there.
        AlreadyReleased: if somebody has released it, or its time is over and polls deal with its tasks.
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
    """Let go of some tasks that were due when a brake was released: how many, and whether none is left."""
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
    End holds whose time is over, and go on with releases, for a part of a poll; give how many tasks were changed.

    Several processes may do so at once. A batch commits with its place: after a crash, another poll goes on there. Tasks that
    somebody else has locked are left for later polls.
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
    """End holds whose time is over, but for those that somebody has locked, perhaps to release them: polls wait for nobody."""
    with polling(using):
        held = list(over.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True))
        rows = Hold.objects.using(using).filter(pk__in=held)
        rows.filter(lifted_at=None).update(lifted_at=F("until"))
        if rows.filter(then=Then.RUN, park_above=None).update(released_at=now):
            announce(using=using)


def _try(hold_id: UUID, size: int, *, now: datetime, using: str) -> tuple[int, int]:
    """Deal with a batch: how many tasks changed; the next size, smaller if some were locked, 0 if the release is over."""
    caught: list[Exception] = []
    with catching(caught), polling(using, AT_ONCE):
        return _settle_some(hold_id, size, now=now, using=using)
    if isinstance(caught[0], OperationalError) and sqlstate_of(caught[0]) in ("55P03", "40P01"):
        if size == 1:
            logger.info("The hold %s is released when what it is about is not locked.", hold_id)
        return 0, size // 2
    if not is_usable(using):
        raise caught[0]
    # Polls go on, because tasks that are not on hold must not wait for it.
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
    """The next by id, of those there when the hold ended: revisions made by this are left out."""
    tasks = tasks_under([hold], ScheduledTask.objects.using(using).filter(state__in=_AT_REST))
    tasks = tasks.filter(created_at__lt=hold.lifted_at)
    if hold.place is not None:
        tasks = tasks.filter(pk__gt=hold.place)
    if hold.then == Then.EXPIRE:
        tasks = tasks.filter(scheduled_at__lte=hold.lifted_at)
    # For everything, a queue or a tag: in the order of the primary key. For fewer tasks: found by their own index, then sorted.
    tasks = tasks.order_by("pk") if hold.scope in (Scope.EVERYTHING, Scope.QUEUE, Scope.TAG) else tasks.by_id()
    return list(tasks.values_list("pk", flat=True)[:size])


def _expire(hold: Hold, tasks: Sequence[ScheduledTask], locked: Locked, *, now: datetime, using: str) -> int:
    reason = _reason(hold, DUE_ON_HOLD)
    writes = [
        Write(task=task, triggers=(Trigger.CANCEL,), reason=reason)
        for task in tasks
        if hold.lifted_at is not None and task.scheduled_at <= hold.lifted_at
    ]
    done = apply(writes, now=now, using=using)
    reconcile_locked(locked.runs, locked.entities, now=now, using=using, lenient=True)
    return len(done)


def _shift(hold: Hold, tasks: Sequence[ScheduledTask], locked: Locked, *, now: datetime, using: str) -> int:
    # Read after the tasks are locked: another hold that has dealt with one of them has committed this.
    holds = Hold.objects.using(using).filter(then=Then.SHIFT).exclude(pk=hold.pk)
    others = [*holds.filter(lifted_at__gt=hold.created_at), *holds.over(now).exclude(lifted_at__gt=hold.created_at)]
    since = _there_since(tasks, using)
    places = []
    for task in tasks:
        over = [other for other in others if covers(other, task)]
        counted = [_span(other) for other in over if _is_counted(other, task, since[task.pk])]
        spans = [_span(hold)]
        if task.state not in WAITING:  # Other holds that have not dealt with it yet will not see its next revision.
            spans += [_span(other) for other in over if not _is_counted(other, task, since[task.pk])]
        length = timedelta(0)
        for first, last in spans:
            length += lost(max(first, since[task.pk]), last, counted)
            counted.append((first, last))
        if length:
            places.append((task, min(_within_hours(task, task.scheduled_at + length, locked), _MOST)))
    move_locked(places, reason=_reason(hold, SHIFTED), now=now, using=using, sticks=False)
    return len(places)


def _there_since(tasks: Sequence[ScheduledTask], using: str) -> dict[UUID, datetime]:
    """
    When each task came into being; a revision that a hold has made is as old as the one before it.

    Two statements for each level of such revisions; one, if a task has any earlier revision; otherwise none.
    """
    since = {task.pk: task.created_at for task in tasks}
    made_of = {task.previous_id: task.pk for task in tasks if task.previous_id is not None}
    while made_of:
        ends = LogEntry.objects.using(using).filter(task__in=list(made_of), to_state=State.CANCELLED)
        shifted = ends.filter(detail__said__sentence=SHIFTED.name).values_list("task", flat=True)
        rows = ScheduledTask.objects.using(using).filter(pk__in=list(shifted)).only("created_at", "previous_id")
        since |= {made_of[row.pk]: row.created_at for row in rows}
        made_of = {row.previous_id: made_of[row.pk] for row in rows if row.previous_id is not None}
    return since


def _within_hours(task: ScheduledTask, at: datetime, locked: Locked) -> datetime:
    """A due time that stays in the task's window: if it was due within it, it is due when the window opens next."""
    with suppress(UnknownTask, UnreadableEntity, InvalidInput):
        definition, declared = registry.task(task.task_key)
        hours, zone = declared.options.window, zone_of(definition, locked.entities.get(task.entity_ref))
        if hours is not None and task.run_id is not None and hours.is_open(task.scheduled_at, zone):
            return hours.next_open(at, zone)
    return at


def _span(hold: Hold) -> tuple[datetime, datetime]:
    return hold.created_at, hold.lifted_at or hold.until or hold.created_at


def _is_counted(hold: Hold, task: ScheduledTask, since: datetime) -> bool:
    """Whether a due time includes a hold: it has moved the task, or another made this revision when both were over."""
    if not hold.is_open or (hold.place is not None and hold.place >= task.pk):
        return True
    return since < task.created_at and _span(hold)[1] <= task.created_at


def _reason(hold: Hold, said: reasons.Sentence) -> Reason:
    reason = said(what=in_english(hold), first=hold.created_at, last=hold.lifted_at)
    return replace(reason, actor=hold.released_by)


def lost(first: datetime, last: datetime, counted: Iterable[tuple[datetime, datetime]]) -> timedelta:
    """How much of a span of time is not counted yet; counted spans come in any order, and may overlap."""
    length, at = timedelta(0), first
    for begun, ended in sorted(counted):
        length += max(min(begun, last) - at, timedelta(0))
        at = max(at, min(ended, last))
    return length + max(last - at, timedelta(0))
