"""What is told of a move or an ending: topics, the JSON that is sent (no payload, result or person), and its delivery rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connections
from django.utils.translation import gettext as _

from timeline.dialects import dialect_of
from timeline.lifecycle import FINAL
from timeline.registry import registry
from timeline.signals import Ending, Entered
from timeline.suggestions import near

MAX_TOPICS: Final = 100
ENDINGS: Final = tuple(sorted(str(state) for state in FINAL))
OWN: Final = frozenset({"alerts"})  # Timelines of the package itself, of which nobody outside is told.

PACKAGE: Final = "timeline.webhooks"
KEPT_UP: Final = timedelta(days=3)  # So long a delivery is tried.


def known_topics() -> Iterator[str]:
    """What there is to tell: ``booking``, ``booking.BOOKED``, ``task.discarded``, ``task.discarded.trial.remind``, …."""
    for definition in registry:
        if definition.tells:
            yield definition.name
            yield from (f"{definition.name}.{told}" for told in sorted(definition.tells))
    for ending in ENDINGS:
        yield f"task.{ending}"
        for definition in registry:
            if definition.name not in OWN:
                yield f"task.{ending}.{definition.name}"
                yield from (f"task.{ending}.{definition.task_key(name)}" for name in definition.tasks)


def check_topics(value: Any) -> None:
    """See that what an endpoint wants is there; ``ValidationError`` names what is not, and what may be meant."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_TOPICS:
        raise ValidationError(_("Give a list of 1 to %(most)d topics.") % {"most": MAX_TOPICS})
    known = list(known_topics())
    for topic in value:
        if topic not in known:
            said = {"topic": f"{topic!a:.80}", "near": ", ".join(near(topic, known) or known[:3])}
            raise ValidationError(_("%(topic)s is nothing that is told. There are: %(near)s.") % said)


def topics_of_entry(entry: Entered) -> list[str]:
    """The topics of a move, what it is called first; none: its machine does not tell it."""
    definition = registry.about(entry.timeline, entry.entity_label)
    told = definition.tells if definition is not None else frozenset()
    names = [name for name in (entry.to_state, entry.event) if name in told]
    return [*(f"{entry.timeline}.{name}" for name in names), entry.timeline] if names else []


def topics_of_ending(ending: Ending) -> list[str]:
    """The topics of a task that ends, what it is called first; none: it is one of the package itself."""
    timeline = ending.task_key.partition(".")[0]
    if timeline in OWN:
        return []
    return [f"task.{ending.state}", f"task.{ending.state}.{timeline}", f"task.{ending.state}.{ending.task_key}"]


@dataclass(frozen=True, slots=True)
class Fact:
    """Something told once to each endpoint. ``source`` is the id of the entry or task; the first of ``topics`` its type."""

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


def write_deliveries(facts: Sequence[Fact], *, now: datetime, using: str) -> None:
    """Write what is to be sent, in the order of facts, in the caller's transaction; not what an endpoint is told already."""
    connection = connections[using]
    parameters: dict[str, Any] = {
        "topics": json.dumps(sorted({topic for fact in facts for topic in fact.topics})),
        "facts": json.dumps([_as_data(fact) for fact in facts], ensure_ascii=False),
        "now": connection.ops.adapt_datetimefield_value(now),
        "until": connection.ops.adapt_datetimefield_value(now + KEPT_UP),
    }
    with connection.cursor() as cursor:
        cursor.execute(dialect_of(using).sql("write_deliveries", package=PACKAGE), parameters)


def _as_data(fact: Fact) -> dict[str, Any]:
    return {
        "source": fact.source.hex,
        "topic": fact.topics[0],
        "topics": fact.topics,
        "label": fact.entity_label,
        "entity": fact.entity_id,
        "body": fact.body,
    }
