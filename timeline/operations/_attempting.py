"""Begin attempts: tasks become active, committed before any handler is entered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Model

from timeline.definition import Definition, Task, Timeline
from timeline.exceptions import UnknownTask
from timeline.lifecycle import COMPOSED, WAITING, ReasonCode, State, Trigger
from timeline.models import LogEntry, ScheduledTask
from timeline.operations._transition import Write, apply
from timeline.registry import registry


@dataclass(slots=True)
class Attempt:
    """
    One attempt at one task.

    Args:
        task: In state ``active``.
        definition: Its timeline.
        declared: Its task there.
        now: Story time at which it started.
        lost: Whether the attempt before was lost with its worker.
        entity: As of the last look; None for a system timeline.
    """

    task: ScheduledTask
    definition: Definition
    declared: Task[Any, ..., Any]
    now: datetime
    lost: bool
    entity: Model | None = None

    def timeline(self, using: str) -> Timeline:
        """Make the instance whose method is the handler."""
        task = self.task
        return self.definition.cls(
            task=task,
            run=task.run,
            event=task.cause,
            now=self.now,
            lost=self.lost,
            idempotency_key=_idempotency_key(task, using),
        )


def begin(task_ids: Sequence[UUID], *, token: UUID | None, worker: str, now: datetime, using: str) -> list[Attempt]:
    """
    Start what may be started; leave the rest.

    Args:
        task_ids: In the order they should run.
        token: Of the claim, for tasks that came through a broker; None: only tasks that nobody has claimed.
        worker: Who takes them, as shown on the row.
        now: Story time.
        using: Database alias.

    Returns:
        The attempts begun, in the order given. Not among them: tasks that are not due, claimed by somebody else, started by
        somebody else, ended, or of a key this process does not know.
    """
    related = ("run", "cause")
    with transaction.atomic(using=using, durable=True):
        rows = ScheduledTask.objects.using(using).select_related(*related).in_bulk(list(task_ids))
        lost = _lost_before(rows.values(), using)
        attempts, writes = {}, []
        for task in (rows[task_id] for task_id in dict.fromkeys(task_ids) if task_id in rows):
            triggers = _triggers(task, token, now)
            found = _handler(task) if triggers else None
            if found is not None:
                attempts[task.pk] = Attempt(task, *found, now=now, lost=task.pk in lost)
                writes.append(Write(task=task, triggers=triggers, worker=worker))
        started = apply(writes, now=now, using=using)
    return [attempts[task.pk] for task in started]


def _triggers(task: ScheduledTask, token: UUID | None, now: datetime) -> tuple[Trigger, ...]:
    state = State(task.state)
    if state == State.AVAILABLE or (state == State.PENDING and token is not None and task.claim_token == token):
        return (Trigger.START,)
    if state in WAITING and (state, State.ACTIVE) in COMPOSED and task.scheduled_at <= now:
        return (Trigger.DUE, Trigger.START)
    return ()


def _lost_before(tasks: Iterable[ScheduledTask], using: str) -> set[UUID]:
    """Tasks whose last attempt was lost. Their logs tell: the rows' reasons may have become others since, by a move."""
    again = [task.pk for task in tasks if task.attempt]
    if not again:
        return set()
    ends = LogEntry.objects.using(using).filter(task__in=again, attempt=F("task__attempt"), from_state=State.ACTIVE)
    return set(ends.filter(reason_code=ReasonCode.WORKER_LOST).values_list("task_id", flat=True))


def _handler(task: ScheduledTask) -> tuple[Definition, Task[Any, ..., Any]] | None:
    try:
        return registry.task(task.task_key)
    except UnknownTask:
        return None


def _idempotency_key(task: ScheduledTask, using: str) -> UUID:
    """Walk back through revisions to the first one after a completed one. Most tasks have none: no query."""
    key, previous = task.pk, task.previous_id
    while previous is not None:
        row = ScheduledTask.objects.using(using).filter(pk=previous).values("state", "previous_id").get()
        if row["state"] == State.COMPLETED:
            break
        key, previous = previous, row["previous_id"]
    return key
