"""
Decide, under the locks of entity and run, which event of a machine goes with the outcome of a task. A timer moves the machine
only in the visit that it was made for. An error may be an answer: of the events that it may mean, the first that the state
takes counts. No run may move too often within an hour: then the task is discarded, or another event comes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from traceback import walk_tb
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from timeline.definition import Definition, Then
from timeline.definition.payload_types import check_payload
from timeline.engine.attempts import PASSING, Attempt
from timeline.engine.failures import discarding
from timeline.engine.finalize import record_together
from timeline.exceptions import HandlerSignal, InvalidInput, MovesTooOften, UnknownTask, WorkerLost
from timeline.features.machines.declaration import table_of, unknown_event
from timeline.features.machines.moves import Wish
from timeline.features.machines.parse import events_of
from timeline.features.machines.passages import act, way_of
from timeline.features.machines.sentences import ANSWERED
from timeline.features.machines.visits import left
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import RunEntry, ScheduledTask, TimelineRun
from timeline.models.facts import is_of_visit
from timeline.models.task_records import in_doubt_among, origins_of
from timeline.operations.emit import emit_among
from timeline.operations.record_event import EventFields, refuse_ours
from timeline.operations.sets import rounds
from timeline.payloads import check_data
from timeline.registry import registry
from timeline.store.transition import Write

SPAN: Final = timedelta(hours=1)  # Moves are counted within it.

# What these raise, a handler has not: conditions and effects of moves, and the writing of what it has returned.
_NOT_OF_HANDLERS: Final = frozenset({act.__code__, way_of.__code__, record_together.__code__})

_OF_RUN: Final = ("state", "state_at", "back", "moves", "ended_at", "end_code", "end_reason")
# Equal for tasks that are written together: event, payload as text, task key, and key of the run.
_Alike = tuple[str, str, str, str | None]


def answered(attempt: Attempt, error: BaseException, write: Write, *, together: bool = False) -> Write:
    """
    If an error that a handler raised is an answer for its machine, the task completes, and the machine moves. Otherwise
    ``write`` stays, the failure. ``together``: one call was for several tasks, so nobody knows whose answer it is.
    """
    errors = attempt.definition.errors
    if not errors or together or attempt.task.run_id is None or isinstance(error, HandlerSignal):
        return write
    passes = PASSING in write.evidence and not write.failures  # Tried again, and not counted.
    if passes or write.reason is None or write.reason.code == ReasonCode.IN_DOUBT or attempt.declared.is_timer:
        return write
    if any(frame.f_code in _NOT_OF_HANDLERS for frame, _line in walk_tb(error.__traceback__)):
        return write
    events = tuple(dict.fromkeys(events_of(error, errors)))
    return replace(write, answers=events) if events else write


def lost_for_good(write: Write, *, using: str) -> Write:
    """
    If the loss of a task's last worker is an answer for its machine, as an error would be, the machine moves; the task is
    discarded all the same. It is none where nobody knows whether a step happened.
    """
    task = write.task
    try:
        definition, declared = registry.task(task.task_key)
    except UnknownTask:
        return write
    if not definition.errors or task.run_id is None or declared.is_timer:
        return write
    events = tuple(dict.fromkeys(events_of(WorkerLost(task.pk, task.attempt), definition.errors)))
    if not events or _is_in_doubt(task, using):
        return write
    return replace(write, answers=events)


def _is_in_doubt(task: ScheduledTask, using: str) -> bool:
    [origin] = origins_of({task.pk: task.previous_id}, using=using).values()
    return bool(in_doubt_among([origin], using=using))


def decided(writes: Sequence[Write], runs: Mapping[UUID, TimelineRun], *, now: datetime, using: str) -> Sequence[Write]:
    """Decide which events move the machines of tasks, whose runs are locked. One statement or two, if any moved very often."""
    if not any(write.then is not None or write.answers for write in writes):
        return writes
    chosen = [_chosen(write, runs.get(write.task.run_id) if write.task.run_id else None) for write in writes]
    spinning = _spinning([write for write in chosen if write.then is not None], runs, now=now, using=using)
    if not spinning:
        return chosen
    came_by = _came_by([runs[key] for key in spinning if key], using=using)
    return [
        _bounded(write, runs[key], came_by[key]) if (key := write.task.run_id) and key in spinning else write
        for write in chosen
    ]


def _chosen(write: Write, run: TimelineRun | None) -> Write:
    if run is None or not (write.answers or write.then is not None):
        return write
    try:
        definition, declared = registry.task(write.task.task_key)
    except UnknownTask:
        return write
    if declared.is_timer and declared.when is not None and not is_of_visit(write.task, run, declared.when):
        return Write(task=write.task, triggers=(Trigger.CANCEL,), reason=left(write.task.anchor, declared.when))
    if not write.answers:
        return write
    takes = table_of(definition).takes(run.state)
    event = next((event for event in write.answers if event in takes), None)
    if event is None:
        return replace(write, answers=())
    if write.reason is not None and write.reason.code == ReasonCode.WORKER_LOST:
        return replace(write, answers=(), then=Then(event))
    return _moving_by(event, write)


def _moving_by(event: str, write: Write) -> Write:
    """The outcome of an error that is an answer: the log keeps the error, and it is no failure."""
    error = (write.error or {}).get("class", "")
    return Write(
        task=write.task,
        triggers=(Trigger.COMPLETE,),
        reason=ANSWERED(error=error, event=event),
        result=json.dumps({"then": event}, ensure_ascii=False),
        error=write.error,
        raised=write.raised,
        then=Then(event),
    )


def _spinning(
    writes: Sequence[Write], runs: Mapping[UUID, TimelineRun], *, now: datetime, using: str
) -> set[UUID | None]:
    """Of some runs that are to be moved, those that have already moved as often as they may within the last hour."""
    asked = Q()
    for run_id in {write.task.run_id for write in writes}:
        run = runs.get(run_id) if run_id else None
        definition = registry.about(run.timeline, run.entity_label) if run else None
        if run is not None and definition is not None and 0 < definition.most_moves <= run.moves:
            asked |= Q(run=run.pk, seq=run.moves - definition.most_moves + 1)
    if not asked:
        return set()
    entries = RunEntry.objects.using(using).filter(asked, at__gt=now - SPAN)
    return set(entries.values_list("run", flat=True))


def _came_by(runs: Sequence[TimelineRun], *, using: str) -> dict[UUID, str]:
    """Run → the event by which it came to where it is."""
    last = reduce(or_, (Q(run=run.pk, seq=run.moves) for run in runs))
    return dict(RunEntry.objects.using(using).filter(last).values_list("run", "event"))


def _bounded(write: Write, run: TimelineRun, came_by: str) -> Write:
    """
    An outcome whose move would be one too many moves by the event for this case. It fails for good if that was the last event
    already: nobody has helped since, and it would go round.
    """
    definition = registry.timeline(run.timeline)
    if write.then is None or not _moves(definition, run, write.then.event):
        return write
    if definition.spinning and came_by != definition.spinning and _moves(definition, run, definition.spinning):
        return replace(write, then=Then(definition.spinning))
    error = MovesTooOften(definition.name, str(run.entity_ref), definition.most_moves, write.then.event)
    reason = Reason(ReasonCode.ERROR, error.in_english())
    return discarding(write.task, reason, error, failures=1)


def _moves(definition: Definition, run: TimelineRun, event: str) -> bool:
    return table_of(definition).moves(run.state, event)


def checked(then: Then, definition: Definition) -> dict[str, Any]:
    """
    Check that the machine has the returned event, before anything is written; give the result that the task keeps.

    Raises:
        InvalidInput: for a task without a machine, an event that only this package writes, or a payload of another type.
        UnknownMachineEvent: if no state takes the event.
        NotPlainJSON, PayloadTooLarge: naming ``payload``.
    """
    if definition.machine is None:
        problem = _("is Then(…), and %(timeline)s is no machine.")
        raise InvalidInput("result", problem, _("Call emit(…) in the handler."), timeline=definition.name)
    refuse_ours(then.event, field="result")
    if then.event not in table_of(definition).events:
        raise unknown_event(definition, then.event)
    check_data("payload", then.payload)
    if then.event in definition.payloads:
        check_payload(then.payload, definition.payloads[then.event], event=then.event)
    return {"then": then.event} | ({"payload": then.payload} if then.payload else {})


def move_on(writes: Iterable[Write], runs: Mapping[UUID, TimelineRun], *, now: datetime, using: str) -> set[UUID]:
    """
    Move the machines of tasks whose outcomes were just written; those with the same event and payload together. Gives the runs
    that have moved, for the caller to reconcile. ``runs`` are locked, and brought up to date.

    Raises:
        MoveNotAllowed, NoOpenRun: if a machine does not take the event. The caller undoes what was written.
    """
    alike: dict[_Alike, list[Write]] = defaultdict(list)
    have_moved: set[UUID] = set()
    for write in writes:
        if write.then is not None:
            run = runs.get(write.task.run_id) if write.task.run_id else None
            payload = json.dumps(write.then.payload, sort_keys=True)
            alike[write.then.event, payload, write.task.task_key, run.key if run else None].append(write)
    for (event, payload, task_key, run_key), several in alike.items():
        said = EventFields(event, "", json.loads(payload), task_key, occurred_at=now, recorded_at=now)
        wish = Wish(machine=several[0].task.timeline, run_key=run_key)
        for refs in rounds(write.task.entity_ref for write in several):
            done = emit_among(said, refs, wish=wish, later=runs, using=using)
            for moved in (*done.ended.runs, *done.moved):
                if (held := runs.get(moved.pk)) is not None:
                    held.__dict__.update({name: getattr(moved, name) for name in _OF_RUN})
                    have_moved.add(moved.pk)
    return have_moved
