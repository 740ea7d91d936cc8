"""Waits: what a task at rest waits for, whether it has come, and the records of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from timeline.models import EntityRef, Event, StepKind, StepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """
    What a task waits for.

    Args:
        events: Names; the first that comes of any of them.
        key: The event's; empty: whichever it has.
        of: Whose, by the name that its events are recorded under.
        since, until: Recorded from the one on, and before the other.
        but: Events that do not count: they have served already.
    """

    events: tuple[str, ...]
    key: str
    of: EntityRef
    since: datetime
    until: datetime
    but: frozenset[UUID] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """As its record keeps it."""
        return {
            "events": list(self.events),
            "key": self.key,
            "of": list(self.of),
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "but": sorted(map(str, self.but)),
        }

    @classmethod
    def of_json(cls, place: Mapping[str, Any]) -> Wait:
        """As its record kept it."""
        return cls(
            events=tuple(place["events"]),
            key=place["key"],
            of=EntityRef(*place["of"]),
            since=datetime.fromisoformat(place["since"]),
            until=datetime.fromisoformat(place["until"]),
            but=frozenset(map(UUID, place["but"])),
        )

    def is_met_by(self, event: Event) -> bool:
        """Whether this is what it waits for."""
        is_its = event.name in self.events and event.entity_ref == self.of and (not self.key or event.key == self.key)
        return is_its and self.since <= event.recorded_at < self.until and event.pk not in self.but


@dataclass(frozen=True, slots=True, kw_only=True)
class Rests:
    """
    That a task goes to rest until a wait is over.

    Args:
        wait: What for.
        origin: Idempotency key of the task.
        name: Of the record; empty: there is none, since the row and its declaration tell it all.
    """

    wait: Wait
    origin: UUID
    name: str
    columns: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        wait = self.wait
        columns = {
            "awaits": " ".join(wait.events),
            "awaits_key": wait.key,
            "awaits_label": wait.of.label,
            "awaits_id": wait.of.id,
        }
        object.__setattr__(self, "columns", columns)


def first_met(wait: Wait, *, using: str) -> Event | None:
    """Find the first event that a wait is met by."""
    events = Event.objects.using(using).filter(
        entity_label=wait.of.label,
        entity_id=wait.of.id,
        name__in=wait.events,
        recorded_at__gte=wait.since,
        recorded_at__lt=wait.until,
    )
    if wait.key:
        events = events.filter(key=wait.key)
    if wait.but:
        events = events.exclude(pk__in=wait.but)
    return events.order_by("recorded_at", "pk").first()


def met_among(waits: Sequence[Wait], *, using: str) -> list[bool]:
    """Tell of several waits whether each is met. One statement for all of them; what it finds is looked at one by one."""
    if len(waits) == 1:
        return [first_met(waits[0], using=using) is not None]
    events = Event.objects.using(using).filter(
        entity_label__in=sorted({wait.of.label for wait in waits}),
        entity_id__in=sorted({wait.of.id for wait in waits}),
        name__in=sorted({name for wait in waits for name in wait.events}),
        recorded_at__gte=min(wait.since for wait in waits),
        recorded_at__lt=max(wait.until for wait in waits),
    )
    there: dict[EntityRef, list[Event]] = {}
    for event in events.only("name", "key", "entity_label", "entity_id", "recorded_at"):
        there.setdefault(event.entity_ref, []).append(event)
    return [any(wait.is_met_by(event) for event in there.get(wait.of, ())) for wait in waits]


def open_waits(rests: Iterable[tuple[UUID, int, Rests]], *, now: datetime, using: str) -> None:
    """
    Record that tasks wait, in the transaction in which they go to rest. What is recorded already stays as it is.

    Args:
        rests: Of each its id, its attempt, and what it waits for.
        now: Story time.
        using: Database alias.
    """
    records = [
        StepRecord(
            origin=known.origin,
            name=known.name,
            task_id=task_id,
            attempt=attempt,
            kind=StepKind.WAIT,
            recorded_at=now,
            seconds=0.0,
            place=known.wait.as_json(),
        )
        for task_id, attempt, known in rests
    ]
    StepRecord.objects.using(using).bulk_create(records, ignore_conflicts=True)
