"""Wait for events in a handler: give the event if it has come, or end the attempt, so that the task rests until it comes."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from timeline.exceptions import LeaseLost, Rest
from timeline.features.recurring.store import Behind, have_ended, try_system
from timeline.features.steps.store import record_place, steps_of
from timeline.features.waits.declaration import ASLEEP
from timeline.features.waits.rests import MayRest
from timeline.features.waits.sentences import WAITS_FOR, WAITS_FOR_NOBODY, WAITS_FOR_OTHER
from timeline.features.waits.store import (
    TRIES_AGAIN,
    Rests,
    Wait,
    causes_of,
    declared_wait,
    first_met,
    is_gone,
    lock_awaited,
    met_among,
    open_waits,
    ref_awaited,
    refs_led_to,
    whose,
)
from timeline.lifecycle import Reason
from timeline.models import EntityRef, Event, ScheduledTask, StepKind, StepRecord
from timeline.models.kin import names_of
from timeline.store.locks import Locked, lock_entities
from timeline.store.transactions import atomic
from timeline.store.transition import Write

if TYPE_CHECKING:
    from timeline.engine.attempts import Attempt
    from timeline.features.steps.calls import Steps
    from timeline.features.steps.store import NewStep
    from timeline.features.waits.declaration import EventWait
    from timeline.timing import When


class Waits(Rest):
    """Raised when the event that a handler waits for has not come yet; the task looks again at ``due_at``."""

    def __init__(self, rests: Rests, due_at: datetime) -> None:
        super().__init__(_why(rests), due_at=due_at, rests=rests)


def _why(rests: Rests) -> Reason:
    """Say what a task waits for, and whose event it is if it is not its own entity's."""
    wait = rests.wait
    events = " ".join(wait.events)
    if wait.of is None:
        return WAITS_FOR_NOBODY(events=events, whose=rests.whose, at=wait.until)
    if wait.other:
        return WAITS_FOR_OTHER(events=events, entity=wait.of, at=wait.until)
    return WAITS_FOR(events=events, at=wait.until)


class EventWaiter(MayRest):
    """The waits of one attempt. ``told`` is what the handler is told, the last answer included."""

    word = "wait_for"
    apart = "name=…, or the key= of the event"

    def __init__(self, attempt: Attempt, using: str, told: dict[str, Any]) -> None:
        super().__init__(attempt, using)
        self._told = told

    def wait(self, asked: EventWait) -> Any:
        """
        Give the event that came, or let the task rest; see ``timeline.features.waits.declaration.Waiter``. ``InvalidInput`` if
        it is called at a wrong place; ``Waits`` if the event has not come yet.
        """
        self._refuse()
        asked = self._named(asked)
        return self._asked(asked.recorded_as, lambda steps: self._answered(steps, asked))

    def _named(self, asked: EventWait) -> EventWait:
        """The question, with the name of the other entity."""
        return asked if asked.of is None else replace(asked, of=ref_awaited(asked.of, using=self._using))

    def _answered(self, steps: Steps, asked: EventWait) -> Event | None:
        self._told["awaited"] = answer = self._resolved(steps, asked)
        return answer

    def _resolved(self, steps: Steps, asked: EventWait) -> Event | None:
        attempt, name = self._attempt, asked.recorded_as
        record = attempt.records.get(name)
        if record is not None and record.kind == StepKind.OVER:
            return self._recalled(record)
        now = steps.recorder.now()
        wait = Wait.of_json(record.place) if record is not None and record.place else self._begun(asked, now)
        rests = Rests(wait=wait, origin=attempt.idempotency_key, name=name)
        event = first_met(wait, using=self._using)
        if event is None and now < wait.until and not _is_hopeless(wait, self._using):
            raise Waits(rests, wait.until)
        ended = steps.recorder.new(name, {})._replace(kind=StepKind.OVER, digest="", code="", at=now)
        ended = ended._replace(place=json.dumps(wait.as_json()))
        if event is None:
            return self._run_out(steps, rests, ended, now)
        steps.recorder.keep_place(_with(ended, event))
        return event

    def _run_out(self, steps: Steps, rests: Rests, ended: NewStep, now: datetime) -> Event | None:
        """
        Say that no event came, under the lock of its entity: no event with an earlier time can be committed later. Waits a
        little longer if somebody else has that lock.
        """
        task = self._attempt.task
        with atomic(using=self._using, durable=True):
            if not _is_locked(task, rests.wait, self._using):
                raise Waits(rests, now + TRIES_AGAIN)
            event = first_met(rests.wait, using=self._using)
            if record_place(_with(ended, event), using=self._using) is None:
                raise LeaseLost(task.id, task.attempt)
        steps.recorder.has_recorded = True
        return event

    def _begun(self, asked: EventWait, now: datetime) -> Wait:
        """The wait that begins now; events since the question may have been asked count as well."""
        attempt, task = self._attempt, self._attempt.task
        recorded = steps_of(attempt.idempotency_key, using=self._using).values()
        known = [record for record in recorded if not record.name.startswith(ASLEEP)]  # A sleep asks nothing.
        own = whose(task, using=self._using)
        of = own if asked.of is None else names_of(asked.of, using=self._using)[0]
        served = {UUID(record.result) for record in known if record.kind == StepKind.OVER and record.result}
        served |= {attempt.awaited.pk} if attempt.awaited is not None else set()
        return Wait(
            events=asked.events,
            key=asked.key,
            of=of,
            other=of != own,
            since=self._asked_at(known),
            until=now + asked.within,
            but=causes_of(task) | served,
        )

    def _asked_at(self, known: list[StepRecord]) -> datetime:
        """
        When the question may have been asked at the earliest: by the last recorded step, perhaps in an attempt that was lost.
        So since the end of the record before; else since the run began, or the first revision of an ad hoc task was made.
        """
        task = self._attempt.task
        if len(known) > 1:
            return known[-2].recorded_at
        if task.run is not None:
            return task.run.known_since
        first = ScheduledTask.objects.using(self._using).filter(pk=self._attempt.idempotency_key)
        return first.values_list("created_at", flat=True).first() or task.created_at

    def _recalled(self, record: StepRecord) -> Event | None:
        if record.result is None:
            return None
        return Event.objects.using(self._using).get(pk=record.result)


def awaited_first(attempt: Attempt, using: str) -> Event | None:
    """
    Give the event that the schedule of a task waits for; ``Waits`` if it has not come yet. None for an ad hoc task. Nothing is
    recorded here: the row has the deadline, and events recorded before the deadline stay.
    """
    task, when = attempt.task, attempt.declared.when
    if when is None or task.run is None:
        return None
    wait = _bound(declared_wait(task, when, using=using), attempt, when, using)
    path = when.awaits_of if isinstance(when.awaits_of, str) else ""
    rests = Rests(wait=wait, origin=attempt.idempotency_key, name="", path=path, whose=when.whose)
    event = first_met(wait, using=using)
    if event is not None:
        return event
    if attempt.now < wait.until and not _is_hopeless(wait, using):
        raise Waits(rests, wait.until)
    with atomic(using=using, savepoint=wait.other):
        is_locked = _is_locked(task, wait, using)
        event = first_met(wait, using=using) if is_locked else None
        if (
            wait.other
        ):  # Release the lock: the handler has its own locks to take, and events recorded from now on are too late.
            transaction.set_rollback(True, using=using)
    if not is_locked:
        raise Waits(rests, attempt.now + TRIES_AGAIN)
    return event


def _bound(wait: Wait, attempt: Attempt, when: When, using: str) -> Wait:
    """The wait with the entity whose event it needs now. This may call a function of the host, which may raise anything."""
    task = attempt.task
    if when.awaits_of is None:
        return wait
    if isinstance(when.awaits_of, str):
        [of] = refs_led_to([(task.entity_ref, when.awaits_of)], using=using)
    else:
        entity = when.awaits_of(attempt.entity)
        of = None if entity is None else names_of(ref_awaited(entity, using=using), using=using)[0]
    return replace(wait, of=of, other=of is not None and of != whose(task, using=using))


def _is_hopeless(wait: Wait, using: str) -> bool:
    """Whether no event can come any more, because the other entity does not exist. A statement, if it is another entity."""
    return wait.other and wait.of is not None and is_gone(wait.of, using=using)


def _is_locked(task: ScheduledTask, wait: Wait, using: str) -> bool:
    """Whether we now have the lock of the entity whose event it is, without a wait; True also if there is none to lock."""
    if wait.other and wait.of is not None:
        return wait.of in lock_awaited([wait.of], using=using) or is_gone(wait.of, using=using)
    if not task.entity_label:
        return try_system(using=using)
    return task.entity_ref in lock_entities([task.entity_ref], using=using, wait=False, fresh=True)


def _with(ended: NewStep, event: Event | None) -> NewStep:
    return ended._replace(done=0) if event is None else ended._replace(done=1, result=json.dumps(str(event.pk)))


def still_to_wait(writes: Sequence[Write], locked: Locked, *, now: datetime, using: str) -> Sequence[Write]:
    """
    Look, under the lock of ``emit`` and of a run's end, whether the event may still come. If not, look again at once. No task
    waits in a run that has ended, or for an entity that does not exist.
    """
    waiting = [write for write in writes if write.rests is not None]
    if not waiting:
        return writes
    ours = _locked_others(waiting, using)
    open_runs = {run.pk for run in locked.runs if run.is_open} | {None}
    over = _over(waiting, using)
    at_once = set()
    for write in waiting:
        task = write.task
        is_gone = bool(task.entity_label) and task.entity_ref not in locked.entities
        if task.id in over or is_gone or task.run_id not in open_runs:
            at_once.add(task.id)
    return [
        replace(write, scheduled_at=now) if write.task.id in at_once else _sooner(write, ours, now) for write in writes
    ]


def _locked_others(waiting: Sequence[Write], using: str) -> set[EntityRef]:
    """Try to lock the other entities whose events are waited for: later events then find the tasks at rest."""
    others = {write.rests.wait.of for write in waiting if isinstance(write.rests, Rests) and write.rests.wait.other}
    return lock_awaited({ref for ref in others if ref is not None}, using=using) if others else set()


def _sooner(write: Write, ours: Set[EntityRef], now: datetime) -> Write:
    """Let a task look again soon, if its entity is locked by somebody who perhaps emits an event for it just now."""
    rests = write.rests
    if not isinstance(rests, Rests) or not rests.wait.other or rests.wait.of in ours or write.scheduled_at is None:
        return write
    return replace(write, scheduled_at=min(write.scheduled_at, now + TRIES_AGAIN))


def _over(waiting: Sequence[Write], using: str) -> set[UUID]:
    """Ids of tasks that need not wait any more, or not for that event. A statement for events, runs, and each path."""
    events = [(write.task.id, write.rests.wait) for write in waiting if isinstance(write.rests, Rests)]
    runs = [(write.task.id, write.rests) for write in waiting if isinstance(write.rests, Behind)]
    met = met_among([wait for _id, wait in events], using=using) if events else []
    ended = have_ended([behind for _id, behind in runs], using=using) if runs else []
    paths = [(write, write.rests) for write in waiting if isinstance(write.rests, Rests) and write.rests.path]
    asked = [(write.task.entity_ref, rests.path) for write, rests in paths]
    there = refs_led_to(asked, using=using) if asked else []
    changed = [(write.task.id, of != rests.wait.of) for (write, rests), of in zip(paths, there, strict=True)]
    over = [*zip(events, met, strict=True), *zip(runs, ended, strict=True)]
    return {task_id for (task_id, _what), is_over in over if is_over} | {task_id for task_id, is_so in changed if is_so}


def begin_to_wait(writes: Sequence[Write], *, now: datetime, using: str) -> None:
    """Record the waits of tasks that have gone to rest in this transaction."""
    rests = [
        (write.task.id, write.task.attempt, write.rests)
        for write in writes
        if isinstance(write.rests, Rests) and write.rests.name
    ]
    if rests:
        open_waits(rests, now=now, using=using)
