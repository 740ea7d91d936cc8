"""Waits: what a task at rest waits for, whether it has happened, and the records of waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import router
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.definition.model_fit import led_to
from timeline.dialects import Among
from timeline.exceptions import InvalidInput
from timeline.features.waits.declaration import ASLEEP, PREFIX, renamed
from timeline.models import (
    EntityRef,
    Event,
    ScheduledTask,
    StepKind,
    StepRecord,
    Wake,
    exact_ref,
    model_of,
    ref_of,
    ref_with,
)
from timeline.models.entities import concrete_of, keys_of
from timeline.models.kin import kin_of, names_of, roots_of
from timeline.models.task_records import origins_of
from timeline.store.locks import try_rows
from timeline.store.missing_entities import surely_gone

if TYPE_CHECKING:
    from timeline.timing import When


TRIES_AGAIN: Final = timedelta(
    seconds=1
)  # Until it looks again, if it cannot say that no event came, since somebody has locked the entity.


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """
    The events that a task waits for: the first with any of these names, from ``since`` and before ``until``.

    Args:
        key: Of the event; empty: any key.
        of: The entity, by the name under which its events are recorded; None: one that does not exist yet.
        other: Whether this is another entity than the task's own.
        but: Events that do not count, since they have been used already.
    """

    events: tuple[str, ...]
    key: str
    of: EntityRef | None
    since: datetime
    until: datetime
    but: frozenset[UUID] = frozenset()
    other: bool = False

    def as_json(self) -> dict[str, Any]:
        """The JSON for the record."""
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
        """Make the wait from the JSON of its record."""
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
        """Whether this event ends the wait."""
        is_its = event.name in self.events and event.entity_ref == self.of and (not self.key or event.key == self.key)
        return is_its and self.since <= event.recorded_at < self.until and event.pk not in self.but


@dataclass(frozen=True, slots=True, kw_only=True)
class Rests:
    """
    A task rests until its wait is over.

    Args:
        origin: Idempotency key of the task.
        name: Name of the record; empty: there is none, since the row and the declaration of the task say everything.
        path: Foreign keys from its entity to the one whose events it waits for, if its schedule has a path.
        whose: The path, or the name of the function, that gives the other entity.
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
    """The wait of a task of a run, by its schedule; for another entity, the one that the last look has written to its row."""
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
    """The recorded wait of the handler of a task at rest. One statement, and one for each revision before it."""
    origin = origins_of({task.pk: task.previous_id}, using=using)[task.pk]
    records = StepRecord.objects.using(using).filter(origin=origin, kind=StepKind.WAIT).order_by("-pk")
    records = records.exclude(name__startswith=ASLEEP)
    waits = [Wait.of_json(record.place) for record in records if record.place]
    asked = (task.awaits, task.awaits_key)
    return next((wait for wait in waits if (" ".join(wait.events), wait.key) == asked), None)


def whose(task: ScheduledTask, *, using: str) -> EntityRef:
    """The name under which events of the task's entity are recorded."""
    return names_of(task.entity_ref, using=using)[0] if task.entity_label else task.entity_ref


def causes_of(task: ScheduledTask) -> frozenset[UUID]:
    """The events that caused the task or its run: they do not end its waits."""
    causes = (task.cause_id, task.run.started_by_id if task.run is not None else None)
    return frozenset(cause for cause in causes if cause is not None)


def first_met(wait: Wait, *, using: str) -> Event | None:
    """The first event that ends a wait; None: there is none yet."""
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
    """For each of several waits, whether an event has ended it. One statement for all; each event found is then compared."""
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
    """Record waits (task id, attempt, what for), in the transaction in which tasks go to rest; recorded ones stay."""
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


def refs_led_to(asked: Sequence[tuple[EntityRef, str]], *, using: str) -> list[EntityRef | None]:
    """
    Find to which entities foreign keys lead now, for pairs of an entity and a path. One statement for each model and path.
    Each is named as its events are recorded; None: one of the foreign keys is not set.
    """
    grouped: dict[tuple[str, str], set[EntityRef]] = defaultdict(set)
    for ref, path in asked:
        grouped[ref.label, path].add(ref)
    found: dict[tuple[EntityRef, str], EntityRef] = {}
    for (label, path), refs in grouped.items():
        model = model_of(label)
        end = led_to(model, path) if model is not None else None
        if model is None or end is None:
            continue
        rows = model._base_manager.using(using).filter(Among(keys_of(model, sorted(refs))))
        for key, other in rows.values_list("pk", f"{path.replace('.', '__')}__pk"):
            if other is not None:
                found[EntityRef(label, str(key)), path] = ref_with(concrete_of(end), other)
    roots = kin_of(set(found.values()), using=using)
    return [roots[found[each]][0] if each in found else None for each in asked]


def ref_awaited(entity: Any, *, using: str) -> EntityRef:
    """
    The reference of a saved entity for whose events a task is going to wait. No statement is made, so its events may be
    recorded under another name. ``InvalidInput``, naming ``of``: it is no entity, not saved, or in another database.
    """
    ref = ref_of(entity)
    if not ref.label or (
        isinstance(entity, EntityRef) and exact_ref(*ref) is None
    ):  # No event can be recorded under this reference.
        remedy = _("Give an entity, or leave it out: then it is the task's own.")
        raise InvalidInput("of", _("is %(value)s."), remedy, value=f"{entity!r:.60}")
    if isinstance(entity, Model) and (alias := router.db_for_write(type(entity), instance=entity)) != using:
        remedy = _("Wait for an event of the task's own entity, and emit that where the other one comes.")
        problem = _("is in the database %(alias)s, and the task in %(using)s.")
        raise InvalidInput("of", problem, remedy, alias=alias, using=using)
    return ref


def lock_awaited(refs: Iterable[EntityRef], *, using: str) -> set[EntityRef]:
    """Try to lock other entities, and give those that are: nobody can emit an event of them until our transaction ends."""
    roots = {ref: roots_of(names) for ref, names in kin_of(refs, using=using).items()}
    ours = try_rows(sorted(set().union(*roots.values())), using=using)
    return {ref for ref, rows in roots.items() if rows <= ours}


def is_gone(ref: EntityRef, *, using: str) -> bool:
    """Whether an entity was deleted, so that no event of it can come. One statement, while it exists."""
    model = model_of(ref.label)
    keys = keys_of(model, [ref]) if model is not None else []
    if model is not None and keys and model._base_manager.using(using).filter(pk__in=keys).exists():
        return False
    return ref in surely_gone([ref], using=using)


def rename(old: str, new: str, *, change: Callable[..., int], using: str) -> None:
    """Change tasks and steps that wait for events of such an entity, so that events under its new name wake them."""
    change(ScheduledTask.objects.using(using).filter(awaits__gt=""), column="awaits_label")
    change(Wake.objects.using(using).all())
    records = StepRecord.objects.using(using)
    waits: Any = records.filter(kind=StepKind.WAIT, place__of__0=old).values_list("pk", "place")
    for pk, place in list(waits):
        records.filter(pk=pk).update(place=place | {"of": [new, place["of"][1]]})
    # The name of an answer contains the entity of the event.
    named = records.filter(name__startswith=PREFIX, name__contains=f" of {old} ")
    for pk, name in list(named.values_list("pk", "name")):
        records.filter(pk=pk).update(name=renamed(name, old, new))
