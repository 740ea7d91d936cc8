"""Bodies: what is told of a move or of an ending, as the JSON that is sent. No payload, no result, no person: ask the API."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from timeline.signals import Ending, Entered
from timeline.webhooks.topics import topics_of_ending, topics_of_entry


@dataclass(frozen=True, slots=True)
class Fact:
    """
    Something that is told.

    Args:
        source: Id of the entry or of the task: told once to each endpoint.
        topics: What it is about; the first is its type.
        entity_label, entity_id: Whose it is.
        body: As it is sent.
    """

    source: UUID
    topics: list[str]
    entity_label: str
    entity_id: str
    body: str


def fact_of_entry(entry: Entered) -> Fact | None:
    """Say that a machine came into a state; None: it does not tell that."""
    topics = topics_of_entry(entry)
    if not topics:
        return None
    data: dict[str, Any] = {
        "machine": entry.timeline,
        "entity": _entity(entry.entity_label, entry.entity_id),
        "run": str(entry.run_id),
        "key": entry.key,
        "state": entry.to_state,
        "from": entry.from_state,
        "event": entry.event,
        "seq": entry.seq,
    }
    body = as_body(topics[0], entry.at, data)
    return Fact(entry.entry_id, topics, entry.entity_label, entry.entity_id, body)


def fact_of_ending(ending: Ending, now: datetime) -> Fact | None:
    """Say that a task has ended; None: it is one of which nobody is told."""
    topics = topics_of_ending(ending)
    if not topics:
        return None
    data: dict[str, Any] = {
        "task": ending.task_key,
        "id": str(ending.task_id),
        "entity": _entity(ending.entity_label, ending.entity_id),
        "run": str(ending.run_id) if ending.run_id else None,
        "occurrence": ending.occurrence,
        "attempt": ending.attempt,
        "state": ending.state,
        "reason": ending.reason_code,
    }
    body = as_body(topics[0], now, data)
    return Fact(ending.task_id, topics, ending.entity_label, ending.entity_id, body)


def as_body(topic: str, at: datetime, data: dict[str, Any]) -> str:
    """Write a message as Standard Webhooks has it: ``type``, ``timestamp`` (UTC, ISO 8601) and ``data``."""
    timestamp = at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"type": topic, "timestamp": timestamp, "data": data}, ensure_ascii=False, separators=(",", ":"))


def _entity(label: str, key: str) -> dict[str, str] | None:
    return {"type": label, "id": key} if label else None
