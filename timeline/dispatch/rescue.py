"""Rescue tasks whose lease ran out: tasks of a dead worker run again, and tasks of a lost message are sent again."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from django.db import IntegrityError, OperationalError
from django.db.models import Count, F

from timeline import reasons
from timeline.clocks import MachineTime
from timeline.conf import get_settings
from timeline.dialects import sqlstate_of
from timeline.dispatch.worker_signs import given_signs, let_go_of_the_silent
from timeline.engine.failures import fingerprint
from timeline.engine.finalize import settle
from timeline.exceptions import TransitionNotAllowed
from timeline.hooks import hooks
from timeline.lifecycle import AT_REST, ReasonCode, State, Trigger
from timeline.models import LogEntry, ScheduledTask
from timeline.models.task_records import done_among, origins_of
from timeline.registry import registry
from timeline.store.database_errors import catching, may_be_written_later
from timeline.store.poll_queries import AT_ONCE, polling
from timeline.store.transition import Write, apply

logger = logging.getLogger("timeline")

WAITED: Final = 0.5  # If a transaction took longer than this to begin, it had to wait for the database.
LONGEST_RESEND: Final = timedelta(hours=1)
TRY_AGAIN: Final = timedelta(seconds=5)  # For a task that somebody else has locked; others have their turn before.
TRY_MUCH_LATER: Final = timedelta(minutes=1)  # For a task that cannot be ended; each time, the process logs it.


class Rescued(NamedTuple):
    """What was done: attempts given up, to be due again; tasks that lost their last attempt; messages to send again."""

    retried: list[ScheduledTask]
    discarded: list[ScheduledTask]
    resend: list[ScheduledTask]


def rescue(*, limit: int = 100, now: datetime, using: str, runs: Collection[str] | None = None) -> Rescued:
    """
    Give up attempts and messages whose lease ran out, by the database's real clock; a silent worker's leases run out at once.

    If a worker gives signs, its lease is made longer once: perhaps it could not reach a locked row. The first attempt, and the
    first after a rest, do not count against ``TIMELINE["MAX_LOST"]``: a neighbour may have been the cause. If the lost attempt
    has done a step, it and earlier ones do not count. Each resend of a message doubles the time to the next, up to an hour.
    No locks are waited for: later calls try locked tasks again, and those that cannot be ended, after the others.

    ``runs``: keys of tasks that the caller runs itself, as it sends nothing. Messages of others it leaves to who sends them.
    """
    begun = monotonic()
    with polling(using):
        let_go_of_the_silent(just_waited=monotonic() - begun > WAITED, using=using)
        rows = ScheduledTask.objects.using(using).given_up().annotate(machine_time=MachineTime())
        tasks = list(rows.locked(skip_locked=True)[:limit])
        active = [task for task in tasks if task.state == State.ACTIVE]
        graced = {task.pk for task in _given_longer(active, now=now, using=using)}
        given = [task for task in active if task.pk not in graced]
        further = _further(given, using)
        lost = [
            registry.when_lost(task.task_key, _lost(task, now, further=task.pk in further), now=now) for task in given
        ]
        pending = [task for task in tasks if task.state == State.PENDING]
        resend = [task for task in pending if runs is None or task.task_key in runs]
        _leave([task for task in pending if runs is not None and task.task_key not in runs], using)
        resend = _sent_again(resend, now=now, using=using)
        given_up = apply([write for write in lost if write.triggers == (Trigger.RETRY,)], now=now, using=using)
        last = [write for write in lost if write.triggers == (Trigger.DISCARD,)]
        _set_aside(last, TRY_AGAIN, using)
    return Rescued(given_up, list(_ended(last, now=now, using=using)), resend)


def _given_longer(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Make leases longer if their worker gives signs, except leases that were made longer already and not extended since. The log
    keeps the end of the longer lease; if the worker has extended it meanwhile, the row has a later end.
    """
    there = given_signs([task.worker for task in tasks], using=using) if tasks else set()
    asked = [task for task in tasks if task.worker in there]
    log = LogEntry.objects.using(using).filter(task__in=asked, attempt=F("task__attempt"), detail__has_key="grace")
    until = dict(log.order_by("seq").values_list("task", "detail__until")) if asked else {}
    length, lease = get_settings().grace, get_settings().LEASE
    writes = []
    for task in asked:
        had = datetime.fromisoformat(until[task.pk]) if task.pk in until else None
        if had is None or (task.lease_expires_at or had) > had + lease / 4:
            ends = cast("Any", task).machine_time.astimezone(UTC) + length
            writes.append(Write(task=task, lease=length, evidence={"grace": task.attempt, "until": ends.isoformat()}))
    return apply(writes, now=now, using=using)


def _further(tasks: Sequence[ScheduledTask], using: str) -> set[UUID]:
    """Tasks whose lost attempt has done a step: they have come further, so earlier losses count no more."""
    if not tasks:
        return set()
    origins = origins_of({task.pk: task.previous_id for task in tasks}, using=using)
    done = done_among(origins.values(), [task.pk for task in tasks], using=using)
    return {task.pk for task in tasks if (task.pk, task.attempt) in done}


def _lost(task: ScheduledTask, now: datetime, *, further: bool) -> Write:
    before = 0 if further else task.lost
    is_its_own = task.attempt > 1 and task.reason_code not in AT_REST  # Otherwise a neighbour may have been the cause.
    lost = before + int(is_its_own and not further)
    left = lost < get_settings().MAX_LOST
    return Write(
        task=task,
        triggers=(Trigger.RETRY if left else Trigger.DISCARD,),
        scheduled_at=now if left else None,
        lost=lost - task.lost,
        failures=-task.failures if further else 0,
        fingerprint="" if left else fingerprint(task.task_key, code=ReasonCode.WORKER_LOST),
        reason=reasons.WORKER_SILENT(worker=task.worker) if task.worker else reasons.SOME_WORKER_SILENT(),
    )


def _set_aside(writes: Sequence[Write], wait: timedelta, using: str) -> None:
    """Make leases longer of tasks that will be ended: if one cannot be ended, others still have their turn."""
    held = ScheduledTask.objects.using(using).filter(state=State.ACTIVE, pk__in=[write.task.pk for write in writes])
    if writes:
        held.update(lease_expires_at=MachineTime(wait))


def _ended(writes: Sequence[Write], *, now: datetime, using: str) -> Iterator[ScheduledTask]:
    """
    Write endings by a last loss, each in a transaction of its own: it ends its run or moves its machine. So it locks entity
    and run before the task. The condition of its write repeats that the attempt is still the lost one.
    """
    for write in writes:
        done, error = _end(write, now=now, using=using)
        if error is None:
            yield from done
        elif _is_locked(error):
            logger.info("Task %s lost its last worker; it ends when what it is about is not locked.", write.task.pk)
        else:
            said = "Task %s lost its last worker and cannot be ended; it is tried again in %s."
            logger.error(said, write.task.pk, TRY_MUCH_LATER, exc_info=error)
            _set_aside([write], TRY_MUCH_LATER, using)


def _end(write: Write, *, now: datetime, using: str) -> tuple[list[ScheduledTask], Exception | None]:
    """
    End a task and move its machine, or end it without the move if that is refused for good. Gives the task, or the error: of
    the move, if it may succeed later, or of the end without it.
    """
    for _once_more in range(2):
        trial, caught = write, list[Exception]()
        with catching(caught), polling(using, AT_ONCE):
            # A copy, because a write that fails has changed the columns of its task.
            trial = replace(write, task=copy(write.task))
            for decide in hooks().losses:
                trial = decide(trial, using=using)
            return settle([trial], now=now, using=using), None
        [error] = caught
        if not trial.answers or may_be_written_later(error):
            return [], error
        if not isinstance(error, IntegrityError):
            break  # Otherwise the machine's moves may be missing in the database: they are written again at the next try.
    if not isinstance(error, TransitionNotAllowed):  # Another machine of the entity does not take the event.
        said = "Task %s lost its last worker, and its machine cannot be moved by that."
        logger.warning(said, write.task.pk, exc_info=error)
    caught.clear()
    with catching(caught), polling(using, AT_ONCE):
        return settle([write], now=now, using=using), None
    return [], caught[0]


def _is_locked(error: Exception) -> bool:
    return isinstance(error, OperationalError) and sqlstate_of(error) == "55P03"


def _sent_again(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Make leases of claimed tasks longer: twice as long as at their last sending, which the log counts. A task that was handed
    back is sent now as it was before: this counts once, and is logged already.
    """
    times = _times_sent_again(tasks, using)
    again = [task for task in tasks if task.sent_at is not None]
    writes = [
        Write(task=task, lease=_wait(times.get(task.pk, 0) + 1), evidence={"resend": times.get(task.pk, 0) + 1})
        for task in again
    ]
    return apply(writes, now=now, using=using) + _sent(
        (task for task in tasks if task.sent_at is None), times, using=using
    )


def _leave(tasks: Sequence[ScheduledTask], using: str) -> None:
    """Look at these messages again after a while, behind others. They were not sent, so that nothing is counted or logged."""
    if tasks:
        rows = ScheduledTask.objects.using(using).filter(pk__in=[task.pk for task in tasks], state=State.PENDING)
        rows.update(lease_expires_at=MachineTime(get_settings().resend_after))


def _times_sent_again(tasks: Sequence[ScheduledTask], using: str) -> dict[UUID, int]:
    log = LogEntry.objects.using(using).filter(task__in=tasks, attempt=F("task__attempt"), detail__has_key="resend")
    return dict(log.order_by().values_list("task").annotate(Count("pk")))


def _wait(times: int) -> timedelta:
    """How long to wait for a message that was sent again so many times."""
    doubled: timedelta = get_settings().resend_after * 2 ** min(times, 20)
    return min(doubled, LONGEST_RESEND)


def _sent(tasks: Iterable[ScheduledTask], times: dict[UUID, int], *, using: str) -> list[ScheduledTask]:
    """Make leases longer, and nothing else: one statement for each length."""
    alike: dict[timedelta, list[ScheduledTask]] = defaultdict(list)
    for task in tasks:
        alike[_wait(times.get(task.pk, 0))].append(task)
    for wait, those in alike.items():
        rows = ScheduledTask.objects.using(using).filter(pk__in=[task.pk for task in those], state=State.PENDING)
        rows.update(lease_expires_at=MachineTime(wait), sent_at=MachineTime())
    return [task for those in alike.values() for task in those]
