"""Read the tables, by psycopg or sqlite3, without the package."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from tests.faults.check.history import Effect, Entry, Event, Move, Run, Task

TASKS = (
    "SELECT id, run_id, task_key, occurrence, revision, previous_id, entity_label, entity_id, state, seq, attempt,"
    " scheduled_at, finished_at, reason_code FROM timeline_scheduledtask"
)
ENTRIES = "SELECT task_id, seq, at, from_state, to_state, attempt, reason_code, detail FROM timeline_logentry"
RUNS = "SELECT id, timeline, entity_id, ended_at, end_reason, state, back, moves FROM timeline_timelinerun"
MOVES = "SELECT run_id, seq, from_state, to_state, back, event, cause_id FROM timeline_runentry"
EVENTS = "SELECT id, name, entity_id, key FROM timeline_event"
EFFECTS = "SELECT task, attempt FROM faults_effect"


class Tables(NamedTuple):
    """What the database says, at one moment."""

    read_at: float
    tasks: dict[str, Task]
    entries: list[Entry]
    runs: dict[str, Run]
    effects: list[Effect]
    moves: list[Move]
    events: dict[str, Event]


def read_tables(url: str) -> Tables:
    """
    Read everything in one transaction.

    Args:
        url: ``postgresql://…`` or ``sqlite:///path``.
    """
    with closing(_connect(url)) as connection:
        cursor = connection.cursor()
        tasks = [Task(*(_plain(value) for value in row)) for row in _rows(cursor, TASKS)]
        entries = [Entry(*(_plain(value) for value in row[:-1]), _object(row[-1])) for row in _rows(cursor, ENTRIES)]
        runs = [Run(*(_plain(value) for value in row)) for row in _rows(cursor, RUNS)]
        effects = [Effect(*(_plain(value) for value in row)) for row in _rows(cursor, EFFECTS)]
        moves = [Move(*(_plain(value) for value in row)) for row in _rows(cursor, MOVES)]
        events = [Event(*(_plain(value) for value in row)) for row in _rows(cursor, EVENTS)]
        return Tables(
            read_at=time.time(),
            tasks={task.id: task for task in tasks},
            entries=entries,
            runs={run.id: run for run in runs},
            effects=effects,
            moves=moves,
            events={event.id: event for event in events},
        )


def _connect(url: str) -> Any:
    if url.startswith("sqlite:///"):
        connection = sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True)
        connection.execute("BEGIN")
        return connection
    connection = psycopg.connect(url)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    return connection


def _rows(cursor: Any, query: str) -> Iterator[tuple[Any, ...]]:
    cursor.execute(query)
    yield from cursor.fetchall()


def _plain(value: Any) -> Any:
    """Times as seconds, ids as text with dashes, whatever the database gives."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, str) and len(value) == 32:
        with suppress(ValueError):
            return str(UUID(value))
    if isinstance(value, str) and value[4:5] == value[7:8] == "-" and value[10:11] == " ":
        with suppress(ValueError):
            return datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp()
    return value


def _object(value: Any) -> dict[str, Any]:
    return json.loads(value) if isinstance(value, str) else value
