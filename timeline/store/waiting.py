"""Waits: what a task at rest waits for, whether it has come, and the records of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeline.models import EntityRef, Event, ScheduledTask, StepKind, StepRecord
from timeline.models.kin import names_of
from timeline.models.step import origins_of

if TYPE_CHECKING:
    from timeline.timing import When


TRIES_AGAIN: Final = timedelta(
    seconds=1
)  # To say that nothing came, where somebody has locked whose event it would be.


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """
    What a task waits for.

    Args:
        events: Names; the first that comes of any of them.
        key: The event's; empty: whichever it has.
        of: Whose, by the name that its events are recorded under; None: of nobody that there is yet.
        other: Whether that is another entity than the task's own.
        since, until: Recorded from the one on, and before the other.
        but: Events that do not count: they have served already.
    """

    events: tuple[str, ...]
    key: str
    of: EntityRef | None
    since: datetime
    until: datetime
    but: frozenset[UUID] = frozenset()
    other: bool = False

    def as_json(self) -> dict[str, Any]:
        """As its record keeps it."""
        return {
            "events": list(self.events),
            "key": self.key,
            "of": list(self.of or ()),
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "but": sorted(map(str, self.but)),
            **({"other": True} if self.other else {}),
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
            other=place.get("other", False),
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
        path: Foreign keys that lead from its entity to whose events it waits for, where its schedule says so.
        whose: The path, or the name of the function, that says it.
    """

    wait: Wait
    origin: UUID
    name: str
    path: str = ""
    whose: str = ""
    columns: Mapping[str, str | bool] = field(init=False)

    def __post_init__(self) -> None:
        wait = self.wait
        columns = {
            "awaits": " ".join(wait.events) if wait.of is not None else "",
            "awaits_key": wait.key,
            "awaits_label": wait.of.label if wait.of is not None else "",
            "awaits_id": wait.of.id if wait.of is not None else "",
            "awaits_other": wait.other,
        }
        object.__setattr__(self, "columns", columns)


def declared_wait(task: ScheduledTask, when: When, *, using: str) -> Wait:
    """
    What a task waits for by its schedule; it belongs to a run. Whose events, if those of another entity, is what it was seen
    to wait for last.
    """
    assert task.run is not None  # noqa: S101 (what is scheduled ad hoc waits for no event)
    of: EntityRef | None = whose(task, using=using)
    if other := when.awaits_of is not None:
        of = EntityRef(task.awaits_label, task.awaits_id) if task.awaits_label else None
    return Wait(
        events=when.awaits,
        key=when.awaits_key,
        of=of,
        other=other,
        since=task.run.known_since,
        until=task.nominal_at,
        but=causes_of(task),
    )


def open_wait(task: ScheduledTask, *, using: str) -> Wait | None:
    """What the handler of a task at rest waits for, as is recorded. A statement, and one for each revision that led to it."""
    origin = origins_of({task.pk: task.previous_id}, using=using)[task.pk]
    records = StepRecord.objects.using(using).filter(origin=origin, kind=StepKind.WAIT).order_by("-pk")
    waits = [Wait.of_json(record.place) for record in records if record.place]
    asked = (task.awaits, task.awaits_key)
    return next((wait for wait in waits if (" ".join(wait.events), wait.key) == asked), None)


def whose(task: ScheduledTask, *, using: str) -> EntityRef:
    """What the events of its entity are recorded under."""
    return names_of(task.entity_ref, using=using)[0] if task.entity_label else task.entity_ref


def causes_of(task: ScheduledTask) -> frozenset[UUID]:
    """Events that are why it is there: they do not end its waits."""
    causes = (task.cause_id, task.run.started_by_id if task.run is not None else None)
    return frozenset(cause for cause in causes if cause is not None)


def first_met(wait: Wait, *, using: str) -> Event | None:
    """Find the first event that a wait is met by."""
    if wait.of is None:
        return None
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
    refs = {wait.of for wait in waits if wait.of is not None}
    events = Event.objects.using(using).filter(
        entity_label__in=sorted({ref.label for ref in refs}),
        entity_id__in=sorted({ref.id for ref in refs}),
        name__in=sorted({name for wait in waits for name in wait.events}),
        recorded_at__gte=min(wait.since for wait in waits),
        recorded_at__lt=max(wait.until for wait in waits),
    )
    there: dict[EntityRef, list[Event]] = {}
    for event in events.only("name", "key", "entity_label", "entity_id", "recorded_at"):
        there.setdefault(event.entity_ref, []).append(event)
    return [wait.of is not None and any(map(wait.is_met_by, there.get(wait.of, ()))) for wait in waits]


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
