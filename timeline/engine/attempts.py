"""Begin attempts: tasks become active, committed before any handler is entered."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Model, Q
from django.db.models.fields.json import KeyTransform

from timeline.definition import Definition, Task
from timeline.dialects import Among, dialect_of
from timeline.lifecycle import COMPOSED, WAITING, Reason, ReasonCode, State, Trigger
from timeline.models import Event, LogEntry, ScheduledTask, StepRecord
from timeline.models.task_records import origins_of, recorded_among
from timeline.registry import registry
from timeline.store.floors import IndexPlace
from timeline.store.returned_rows import COLUMNS, as_tasks, read_models
from timeline.store.transactions import committed
from timeline.store.transition import Write, advance, apply

if TYPE_CHECKING:
    from timeline.features.fan_out.fanned_rows import FannedOut
    from timeline.features.steps.calls import Steps
    from timeline.features.steps.recorder import StepWriter


logger = logging.getLogger("timeline")

ANY_ATTEMPT = 2**31 - 1

# The log's key for how many attempts in a row ended by a passing error, this one included.
PASSING: Final = "passing"

_NOTHING_BEFORE: Final = (False, 0)  # Not lost, and no passing errors.
_UNDONE: Final = "The handler of %s was entered, is undone, and will be entered again: %s (task %s, attempt %d)"


@dataclass(slots=True)
class Attempt:
    """
    One attempt at one task, in state ``active``.

    Args:
        lost: Whether the attempt before was lost with its worker.
        idempotency_key: Stays the same until one attempt completes.
        passing: How many attempts before this one, in a row, ended by an error that passes.
        entity: As the last look read it; None for a system timeline.
        seen_at: When the last look allowed it, by ``monotonic()``: the time of its group counts from here.
        alone: Whether it may share no transaction, because one that it shared was undone.
        undone: How often its handler was entered in this attempt, and undone through no fault of its own.
        has_records: Whether steps of the task are done or begun; ``records`` has them by name, once they are read.
        awaited: The event that its schedule waited for; None: the time ran out, or it waits for nothing.
        trace: What those keep about it who look on; None: nobody does.
    """

    task: ScheduledTask
    definition: Definition
    declared: Task[Any, ..., Any]
    now: datetime
    lost: bool
    idempotency_key: UUID
    passing: int = 0
    entity: Model | None = None
    alone: bool = False
    undone: int = 0
    has_records: bool = False
    records: Mapping[str, StepRecord] = field(default_factory=dict)
    steps: Steps | None = None
    step_writer: StepWriter | None = None
    fanned_out: FannedOut | None = None
    awaited: Event | None = None
    trace: Any = None
    seen_at: float = field(default_factory=monotonic)
    begun: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.begun = dict(self.task.__dict__)

    def note_undone(self, why: str) -> None:
        """Note that its handler was entered and is entered again: what it wrote is undone, through no fault of its own."""
        self.undone += 1
        logger.debug(_UNDONE, self.task.task_key, why, self.task.id, self.task.attempt)

    def restore(self) -> None:
        """Set the task back to how it was begun, because the transaction that wrote its outcome was undone."""
        self.task.__dict__.update(self.begun)

    def as_begun(self) -> ScheduledTask:
        """A copy of the task as it was begun, without the changes that threads have made since."""
        task = copy(self.task)
        task.__dict__.update(self.begun)
        return task

    def told(self) -> dict[str, Any]:
        """What the handler is told about this execution: the fields of ``Context``."""
        task = self.task
        return {
            "task": task,
            "run": task.run if task.run_id is not None else None,
            "event": task.cause if task.cause_id is not None else None,
            "now": self.now,
            "lost": self.lost,
            "idempotency_key": self.idempotency_key,
        }


def begin_attempts(
    task_ids: Sequence[UUID], *, token: UUID | None, worker: str, retried: bool = True, now: datetime, using: str
) -> list[Attempt]:
    """
    Start, in the order given, those tasks that are due and nobody else's, and whose key this process knows.

    Several start together only at their first attempt, and only if nobody has their rows locked. ``token`` is that of the claim
    (None: only tasks that nobody has claimed). ``retried`` is whether a single task that was tried before may start.
    """
    asked = list(dict.fromkeys(task_ids))
    is_alone = len(asked) == 1
    attempts = ANY_ATTEMPT if is_alone and retried else 0
    with committed(using):
        if dialect_of(using).has_set_statements:
            given: dict[str, Any] = {"ids": asked, "task_keys": registry.task_keys(), "claim_token": token}
            given |= {"attempts": attempts, "now": now, "using": using}
            rows = advance("given", Trigger.START, columns=COLUMNS, worker=worker, wait=is_alone, **given)
            started = as_tasks(rows, using)
        else:
            rows_there = ScheduledTask.objects.using(using).filter(pk__in=asked)
            tasks = {task.id: task for task in rows_there if task.attempt <= attempts or task.is_as_new}
            started = _start([tasks[key] for key in asked if key in tasks], token, worker, now=now, using=using)
    place = {key: number for number, key in enumerate(asked)}
    return attempts_at(sorted(started, key=lambda task: place[task.id]), now=now, using=using)


def begin_group(
    task_key: str,
    *,
    priority: int,
    most: int,
    since: IndexPlace,
    worker: str,
    retried: bool = True,
    parts: frozenset[str] = frozenset(),
    now: datetime,
    using: str,
) -> list[Attempt]:
    """
    Start available tasks of one kind and priority, the longest due first: several at their first attempt, or else one task.

    The search begins at ``since``. Without ``retried``, nothing starts if the next task was tried before. ``parts``: see
    ``advance``. On SQLite only one task starts.
    """
    with committed(using):
        if dialect_of(using).has_set_statements:
            rows = advance(
                "group",
                Trigger.START,
                columns=COLUMNS,
                worker=worker,
                task_key=task_key,
                priority=priority,
                most=most,
                since=since.since,
                since_id=since.id,
                retried=retried,
                parts=parts,
                now=now,
                using=using,
            )
            started = as_tasks(rows, using)
        else:
            ready = ScheduledTask.objects.using(using).ready().free().filter(task_key=task_key, priority=priority)
            ready = ready.with_parts(parts)
            started = _start(
                [task for task in ready[:1] if retried or task.is_as_new], None, worker, now=now, using=using
            )
    return attempts_at(started, now=now, using=using)


def startable(task_ids: Sequence[UUID], *, token: UUID | None, now: datetime, using: str) -> list[UUID]:
    """Those of the given tasks that may be started at least alone; in the order given."""
    tasks = ScheduledTask.objects.using(using).with_handler(registry.task_keys()).in_bulk(list(task_ids))
    return [key for key in task_ids if key in tasks and _triggers(tasks[key], token, now)]


def still_ours(attempts: Sequence[Attempt], *, using: str) -> list[Attempt]:
    """Those attempts that nobody has cancelled or given up as lost since they began."""
    rows = ScheduledTask.objects.using(using).filter(Among(attempt.task.id for attempt in attempts))
    # The state is no condition: for that, PostgreSQL might read the index of all that were ever active.
    found = rows.values_list("pk", "attempt", "state")
    active = {key: attempt for key, attempt, state in found if state == State.ACTIVE}
    return [attempt for attempt in attempts if active.get(attempt.task.id) == attempt.task.attempt]


def _start(
    tasks: Sequence[ScheduledTask], token: UUID | None, worker: str, *, now: datetime, using: str
) -> list[ScheduledTask]:
    known = set(registry.task_keys())
    moves = [(task, _triggers(task, token, now)) for task in tasks if task.task_key in known]
    writes = [Write(task=task, triggers=triggers, worker=worker) for task, triggers in moves if triggers]
    return apply(writes, now=now, using=using)


def _triggers(task: ScheduledTask, token: UUID | None, now: datetime) -> tuple[Trigger, ...]:
    state = State(task.state)
    has_place = not task.limit_key or bool(task.slot)
    if (state == State.AVAILABLE and has_place) or (
        state == State.PENDING and token is not None and task.claim_token == token
    ):
        return (Trigger.START,)
    if state in WAITING and (state, State.ACTIVE) in COMPOSED and task.scheduled_at <= now and not task.limit_key:
        return (Trigger.DUE, Trigger.START)
    return ()


def attempts_at(tasks: Sequence[ScheduledTask], *, now: datetime, using: str) -> list[Attempt]:
    """Read what the handlers of these tasks are told. A fixed number of statements; none for kinds of data that no task has."""
    again = {task.id: task.previous_id for task in tasks if task.attempt > 1 or task.previous_id is not None}
    keys = origins_of(again, using=using) if again else {}
    recorded = recorded_among(set(keys.values()), using=using) if again else set()
    ends = _ends_before(tasks, using) if again else {}
    _read_causes(tasks, using)
    attempts = []
    for task in tasks:
        definition, declared = registry.task(task.task_key)
        key = keys.get(task.id, task.id) if again else task.id
        lost, passing = ends.get(task.id, _NOTHING_BEFORE) if ends else _NOTHING_BEFORE
        has_records = bool(recorded) and key in recorded
        attempts.append(Attempt(task, definition, declared, now, lost, key, passing=passing, has_records=has_records))
    return attempts


def _read_causes(tasks: Iterable[ScheduledTask], using: str) -> None:
    """Give tasks the events that they name; an attempt does not fail if its event was rolled back and is not there."""
    caused = [task for task in tasks if task.cause_id is not None]
    named = Event.objects.using(using).filter(Among({task.cause_id for task in caused}))
    causes: dict[UUID | None, Event] = {event.pk: event for event in read_models(named)} if caused else {}
    for task in caused:
        if task.cause_id not in causes:
            said = "The event %s that task %s names as its cause is not there; its handler is told of none."
            logger.warning(said, task.cause_id, task.id)
        task.cause = causes.get(task.cause_id)


def _ends_before(tasks: Iterable[ScheduledTask], using: str) -> dict[UUID, tuple[bool, int]]:
    """
    For each last attempt, tell whether it was lost, and how many passing errors in a row ended with it. An attempt that was
    given back does not count. The logs are read, because a move may have changed the reason of the row.
    """
    again = [task.id for task in tasks if task.attempt > 1]
    if not again:
        return {}
    ends = LogEntry.objects.using(using).filter(task__in=again, from_state=State.ACTIVE)
    ends = ends.exclude(reason_code__in=[ReasonCode.RELEASED, ReasonCode.HOLD]).order_by("seq")
    # Django would look for a field "detail__passing" first, and its error would leave a cycle that holds the tasks.
    told = ends.values_list("task_id", "reason_code", KeyTransform(PASSING, "detail"))
    return {task_id: (code == ReasonCode.WORKER_LOST, passing or 0) for task_id, code, passing in told}


def guard_reason(option: str, guard: object) -> Reason:
    """Why a task is cancelled if its guard refuses: ``unless has_replied``; for a series, that it ends here."""
    name = str(guard) if isinstance(guard, Q) else getattr(guard, "__name__", type(guard).__name__)
    return Reason(ReasonCode.UNTIL if option == "until" else ReasonCode.GUARD, f"{option} {name}")
