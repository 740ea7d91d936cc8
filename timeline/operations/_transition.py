"""The one way a task changes: any number of rows in one guarded UPDATE, their log entries in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db import connections, transaction

from timeline.conf import get_settings
from timeline.lifecycle import Reason, State, Trigger, target
from timeline.models import LogEntry, ScheduledTask
from timeline.models.statements import statement
from timeline.planning import Times

MAX_REASON = 200
MAX_ACTOR = 150

_COLUMNS = {column.name: column for column in ScheduledTask._meta.concrete_fields}


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """
    One change of one task. What is None stays as it is.

    Args:
        task: As it was read; its state and attempt guard the write.
        triggers: One move, or two composed; none: only times change.
        reason: Kept on the row and in the log.
        scheduled_at: New due time (aware).
        times: New due time with all it was computed from.
        definition_hash: Goes with ``times``.
        result: What the handler returned, as JSON text.
        error: Of the failed attempt: ``class``, ``message``, ``traceback``.
        failures, lost: Added to the counts.
        claim_token, worker: Who takes the row.
        lease: How long the row is theirs, where the new state is pending or active; None: ``TIMELINE["LEASE"]``.
    """

    task: ScheduledTask
    triggers: tuple[Trigger, ...] = ()
    reason: Reason | None = None
    scheduled_at: datetime | None = None
    times: Times | None = None
    definition_hash: str | None = None
    result: str | None = None
    error: dict[str, str] | None = None
    failures: int = 0
    lost: int = 0
    claim_token: UUID | None = None
    worker: str | None = None
    lease: timedelta | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def states(self) -> list[State]:
        """Each state passed, from where it stands to where it ends."""
        passed = [State(self.task.state)]
        for trigger in self.triggers:
            passed.append(target(passed[-1], trigger, task=self.task.pk))
        return passed


def apply(writes: Sequence[Write], *, now: datetime, using: str) -> list[ScheduledTask]:
    """
    Write the changes and their log entries.

    Args:
        writes: Any number, one a task.
        now: Story time, for the log and for started and finished.
        using: Database alias.

    Returns:
        The given task objects whose guard held, brought up to date, in the order given. One that is missing was changed
        by somebody else since it was read; nothing was written for it.

    Raises:
        TransitionNotAllowed: if the lifecycle has no such move; nothing is written then.
    """
    if not writes:
        return []
    for write in writes:
        target(State(write.task.state), *write.triggers, task=write.task.pk)
    sql = statement("transition", connections[using].vendor)
    parameters = as_parameters(writes, now=now, using=using)
    with transaction.atomic(using=using, savepoint=False):
        changed = {row.pk: row for row in ScheduledTask.objects.using(using).raw(sql, parameters)}
        done = [write for write in writes if write.task.pk in changed]
        entries = [entry for write in done for entry in _entries(write, changed[write.task.pk], now)]
        LogEntry.objects.using(using).bulk_create(entries)
    for write in done:
        _refresh(write.task, changed[write.task.pk])
    return [write.task for write in done]


def as_parameters(writes: Sequence[Write], *, now: datetime, using: str) -> dict[str, object]:
    """Write the changes as the parameters of the statement."""
    changes = json.dumps([_as_change(write, now, using) for write in writes], ensure_ascii=False)
    if connections[using].vendor == "postgresql":
        return {"changes": changes, "ids": [write.task.pk for write in writes]}
    return {"changes": changes}


def _as_change(write: Write, now: datetime, using: str) -> dict[str, object]:
    """Write the change as the statement reads it: values as the database stores them, None left out."""
    lease = write.lease if write.lease is not None else get_settings().LEASE
    times, reason = write.times, write.reason
    scheduled_at = write.scheduled_at or (times.scheduled_at if times else None)
    columns: dict[str, object] = {
        "scheduled_at": scheduled_at,
        "nominal_at": times.nominal_at if times else None,
        "anchor": times.anchor if times else None,
        "anchor_value": times.anchor_value if times else None,
        "expires_at": times.expires_at if times else None,
        "definition_hash": write.definition_hash,
        "claim_token": write.claim_token,
        "worker": write.worker,
        "error": f"{write.error['class']}: {write.error['message']}" if write.error else None,
        "reason_code": reason.code.value if reason else None,
        "reason": _clip(reason.text, MAX_REASON) if reason else None,
        "actor": _clip(reason.actor, MAX_ACTOR) if reason else None,
    }
    stored = {name: _stored(name, value, using) for name, value in columns.items() if value is not None}
    states = write.states
    return {
        **stored,
        "id": _stored("id", write.task.pk, using),
        "from_state": states[0].value,
        "to_state": states[-1].value,
        "from_attempt": write.task.attempt,
        "steps": max(len(write.triggers), 1),
        "moves": len(write.triggers),
        "failures": write.failures,
        "lost": write.lost,
        "result": write.result,
        "lease": f"{lease.total_seconds():+.3f} seconds",
        "at": _stored("finished_at", now, using),
    }


def _stored(column: str, value: object, using: str) -> object:
    prepared = _COLUMNS[column].get_db_prep_save(value, connections[using])
    return prepared if isinstance(prepared, str | int | None) else str(prepared)


def _entries(write: Write, row: ScheduledTask, now: datetime) -> Iterable[LogEntry]:
    states = write.states if write.triggers else [State(write.task.state)] * 2
    reason = write.reason
    for step, (source, end) in enumerate(pairwise(states), start=1):
        last = step == len(states) - 1
        yield LogEntry(
            task_id=row.pk,
            seq=row.seq - (len(states) - 1) + step,
            at=now,
            from_state=source,
            to_state=end,
            attempt=row.attempt if last else write.task.attempt,
            actor=_clip(reason.actor, MAX_ACTOR) if reason and last else "",
            reason_code=reason.code if reason and last else "",
            reason=_clip(reason.text, MAX_REASON) if reason and last else "",
            detail=_detail(write, row) if last else {},
        )


def _detail(write: Write, row: ScheduledTask) -> dict[str, Any]:
    detail: dict[str, Any] = dict(write.evidence)
    if row.scheduled_at != write.task.scheduled_at:
        detail["scheduled_at"] = row.scheduled_at.isoformat()
        detail["scheduled_at_before"] = write.task.scheduled_at.isoformat()
    if write.error is not None:
        detail["error"] = write.error
    return detail


def _refresh(task: ScheduledTask, row: ScheduledTask) -> None:
    for column in _COLUMNS.values():
        setattr(task, column.attname, getattr(row, column.attname))


def _clip(text: str, length: int) -> str:
    """Cut to what the column holds, without what no database stores."""
    clean = text.replace("\x00", "").encode(errors="replace").decode()
    return clean if len(clean) <= length else f"{clean[: length - 1]}…"
