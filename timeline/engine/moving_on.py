"""Moving on: the event that a handler returned for its machine, written with its outcome."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from timeline.confiding import check_data
from timeline.definition import Definition, Then
from timeline.definition.machines import table_of, unknown_event
from timeline.definition.payload_types import check_payload
from timeline.exceptions import InvalidInput
from timeline.models import TimelineRun
from timeline.operations._event_fields import EventFields, refuse_ours
from timeline.operations.emitting import emit_among
from timeline.operations.machines import Wish
from timeline.operations.sets import rounds
from timeline.store.writing import Write

_OF_RUN: Final = ("state", "state_at", "back", "moves", "ended_at", "end_code", "end_reason")

# Equal for tasks that are written together: event, payload as text, task key, and key of the run.
_Alike = tuple[str, str, str, str | None]


def checked(then: Then, definition: Definition) -> dict[str, Any]:
    """
    Check, before anything is written, that the machine has the returned event; give the result that the task keeps.

    Raises:
        InvalidInput: if the task belongs to no machine, the event is one that only this package writes, or the payload is not
            of the declared type.
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
    Move the machines of tasks whose outcomes have just been written, in the caller's transaction. Tasks with the same event
    and payload are moved together.

    Args:
        writes: Writes that have been made.
        runs: The runs that the caller has locked, by their ids; brought up to date.
        now: Story time.
        using: Database alias.

    Returns:
        The runs that have moved; the caller reconciles them.

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
