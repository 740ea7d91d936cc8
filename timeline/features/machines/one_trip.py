"""Write a whole move of one entity in one trip: event, runs, entries, cancelled tasks with their log, and new tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from django.db import connections
from django.db.models import JSONField, Model

from timeline.dialects import as_array, dialect_of, element_type, target_of
from timeline.features.machines.mirror import statement_to_mirror
from timeline.features.machines.store import Going
from timeline.lifecycle import State, Trigger
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.store.changes import PARAMETER, Write, as_changes, composed
from timeline.store.insert import as_stored, fields_of, writers_of
from timeline.store.new_rows import complete
from timeline.store.returned_rows import row_read
from timeline.store.signal_dispatch import announce_times, tell_written
from timeline.store.transition import notice

NAME: Final = "move_at_once"
# What cancelling changes in a task that has no place of a limit.
_TOUCHES: Final = frozenset(
    {
        "id",
        "from_state",
        "to_state",
        "from_attempt",
        "detail",
        "reason_code",
        "reason",
        "actor",
        "ends",
        State.CANCELLED,
    }
)
# Columns that are set only later in the life of a task. A new row has their defaults, which are part of the function, since
# PostgreSQL needs more time to read a column from JSON than to write it.
LATER: Final = (
    *("seq", "attempt", "failures", "lost", "claim_token", "lease_expires_at", "sent_at", "worker", "result", "error"),
    *("fingerprint", "slot", "reason_code", "reason", "actor", "started_at", "finished_at"),
)
_of_later: Final = itemgetter(*LATER)
_AT_FIRST: Final = tuple(fields_of(ScheduledTask)[name].get_default() for name in LATER)
_OURS: Final = {"ids": "its_ids", "changes": "its_changes", "at": "its_at"}
# Calls take time, so this function has the bodies of two others in place of calls. These are their words, and its own for them.
_AWAITED: Final = {"its_label": "timeline_event.entity_label", "its_id": "timeline_event.entity_id"}
_MOVED: Final = {
    "its_ids": "its_runs",
    "its_event": "recorded.name",
    "its_actor": "recorded.actor",
    "SELECT moved.run FROM moved": "SELECT array_agg(moved.run) INTO gone FROM moved",
}
_BODY: Final = re.compile(r"^    RETURN(?: QUERY)?\s(.*);$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Moved:
    """
    What was written: id of the event, empty if it was not new; the same id, if a task waits for it; the runs as they are now.
    """

    recorded: set[UUID]
    met: set[UUID]
    runs: list[TimelineRun]


def fits(writes: Iterable[Write], tasks: Iterable[ScheduledTask] = ()) -> bool:
    """Whether these can be part of a move: plain cancels of tasks with no place, and new tasks with defaults for ``LATER``."""
    return all(
        write.triggers == (Trigger.CANCEL,) and not write.task.slot and write.slot is None for write in writes
    ) and all(_of_later(task.__dict__) == _AT_FIRST for task in tasks)


def move_at_once(
    going: Going,
    event: Mapping[str, Any],
    writes: Sequence[Write],
    tasks: Sequence[ScheduledTask],
    *,
    now: datetime,
    using: str,
) -> Moved:
    """
    Write a move, changes (see ``fits``) and new tasks of a locked entity, its runs and tasks; only if ``can_read_ahead``.
    ``going`` has the runs with their new states. ``MoveNotAllowed``: a run has changed since; the caller undoes what was
    written.
    """
    complete(tasks, using=using)
    parameters = {
        **going.parameters,
        "event_row": _JSON.encode(_as_text(Event, event, using)),
        "changes": _JSON.encode(as_changes(writes, using=using)) if writes else None,
        "tasks_changed": as_array([write.task.id.hex for write in writes]),
        "tasks": _JSON.encode([_as_text(ScheduledTask, task.__dict__, using, but=LATER) for task in tasks])
        if tasks
        else None,
    }
    sql, mirror = dialect_of(using).sql(NAME), statement_to_mirror(going.shown, using=using)
    if mirror is not None:
        sql = dialect_of(using).sql("move_and_mirror").replace("{move}", sql).replace("{mirror}", mirror[0])
        parameters |= mirror[1]
    with going.minding(), connections[using].cursor() as cursor:
        cursor.execute(sql, parameters)
        [done] = cursor.fetchone()
    if done is None:
        return Moved(set(), set(), [])
    said = json.loads(done)
    going.check({UUID(key) for key in said["moved"]})
    going.tell(is_shown=mirror is not None)
    _take(writes, said["told"] or (), now=now, using=using)
    there = {UUID(key) for key in said["made"] or ()}
    created = [as_stored(task, using=using) for task in tasks if task.pk in there]
    announce_times((task.scheduled_at for task in created), now=now, using=using)
    return Moved({event["id"]}, {event["id"]} if said["met"] else set(), going.runs)


def _take(writes: Sequence[Write], told: Iterable[dict[str, Any]], *, now: datetime, using: str) -> None:
    """Update the instances of tasks that were changed, and send the signals."""
    rows = {UUID(row["id"]): row for row in told}
    told_of = _told_of(using)
    notice(rows)
    written = [write for write in writes if write.task.id in rows]
    for write in written:
        write.task.__dict__.update(row_read(rows[write.task.id], ScheduledTask, told_of))
    tell_written(written, now=now, using=using)


_JSON: Final = json.JSONEncoder(ensure_ascii=False)


def _as_text(model: type[Model], row: Mapping[str, Any], using: str, *, but: tuple[str, ...] = ()) -> dict[str, str]:
    """A row as the statement reads it: each value as text. Values that are left out are NULL."""
    return {name: write(value) for name, write in _writers(model, using, but) if (value := row[name]) is not None}


@cache
def _writers(model: type[Model], using: str, but: tuple[str, ...]) -> list[tuple[str, Callable[[Any], str]]]:
    return [(name, write) for name, write in writers_of(model, using).items() if name not in but]


@cache
def _told_of(using: str) -> frozenset[str]:
    """The columns that a statement with these changes returns."""
    return frozenset(composed(dialect_of(using), "many", _TOUCHES).columns)


def function_text(using: str) -> str:
    """The text of the function, made of the rules in ``columns.sql`` and ``entries.sql``, and the columns of the models."""
    dialect = dialect_of(using)
    changed = composed(dialect, "many", _TOUCHES | {"given", "told"}).sql
    parts = {
        "changed": PARAMETER.sub(lambda parameter: _OURS[parameter[1]], changed),
        "asked": _body_of(dialect.sql("function_is_awaited"), _AWAITED),
        "moving": _body_of(dialect.sql("function_move_runs"), _MOVED),
        **_columns("event", Event, using),
        **_columns("task", ScheduledTask, using),
    }
    text = dialect.sql(f"function_{NAME}")
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def _body_of(function: str, words: Mapping[str, str]) -> str:
    """What a function returns, with its words replaced by those of another function."""
    [body] = _BODY.findall(function)
    for theirs, ours in words.items():
        body = re.sub(rf"\b{theirs}\b", ours, body)
    return str(body).strip()


def _columns(word: str, model: type[Model], using: str) -> dict[str, str]:
    """For inserting rows of a model: names of columns, their expressions, and their types for reading them from JSON."""
    later = LATER if model is ScheduledTask else ()
    fields = {name: target_of(field) for name, field in fields_of(model).items() if name not in later}
    columns = {name: f'"{fields_of(model)[name].column}"' for name in fields}
    texts = {name for name, field in fields.items() if isinstance(field, JSONField)}
    types = {
        name: "text" if name in texts else element_type(field, connections[using]) for name, field in fields.items()
    }
    made = {name: f'new."{name}"' + ("::jsonb" if name in texts else "") for name in columns}
    for name, value in zip(LATER, _AT_FIRST, strict=True) if later else ():
        if value is not None:
            columns[name], made[name] = f'"{fields_of(model)[name].column}"', f"'{value}'"
    return {
        word: ", ".join(columns.values()),
        f"its_{word}": ", ".join(made.values()),
        f"as_{word}": ", ".join(f'"{name}" {types[name]}' for name in types),
    }
