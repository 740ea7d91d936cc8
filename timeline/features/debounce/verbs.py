"""
The rows of bursts: each event joins the row that waits, or begins a new one. They belong to no run, so no plan changes them.

The number of a burst is in the occurrence of its row. Two who begin one at the same time want the same number: the unique key
lets one have it, and the other joins that row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import index
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from django.apps import apps
from django.db import connections
from django.db.models import Max

from timeline.conf import get_settings
from timeline.definition import Definition, Task
from timeline.dialects import Among, dialect_of
from timeline.exceptions import AlreadyOpen
from timeline.features.debounce.declaration import BURST, NUMBERED, Debounce, debounced, moment_in
from timeline.features.debounce.sentences import PUT_OFF, PUT_OFF_TO
from timeline.hooks import hooks
from timeline.lifecycle import OPEN, Reason, ReasonCode, State, Trigger
from timeline.models import EntityRef, ScheduledTask
from timeline.operations.current import running
from timeline.planning import Times
from timeline.registry import registry
from timeline.store.new_rows import columns_of, create_missing, expiry_at, options_of
from timeline.store.transition import Write, apply

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

    class Said(Protocol):
        """What was recorded."""

        @property
        def name(self) -> str: ...
        @property
        def actor(self) -> str: ...
        @property
        def recorded_at(self) -> datetime: ...


JOINED: Final = (State.SCHEDULED, State.AVAILABLE)  # Nobody has claimed the row: it takes in what comes.
TRIES: Final = 10
Place = tuple[str, EntityRef]  # Key of a task, and an entity: one burst at a time.


@dataclass(slots=True)
class Arrival:
    """Events that came to one place at the same time: how many, and the last."""

    declared: Task[Any, ..., Any]
    debounce: Debounce
    events: int
    last: UUID


def take_in(
    said: Said, new: Mapping[EntityRef, UUID], names: Mapping[EntityRef, Sequence[EntityRef]], *, using: str
) -> None:
    """
    Let new events join bursts, begin them, or end them. A fixed number of statements for any number of events.

    Args:
        said: The event; new: entity → its id, for each of the entities, which are locked.
        names: All names of each entity in its family.
    """
    for definition in registry:
        if said.name in definition.exits:
            keys = [definition.task_key(name) for name, _debounce in debounced(definition)]
            whose = [name for ref in new for name in names[ref] if name.label == definition.label]
            reason = Reason(ReasonCode.EXIT, definition.exits[said.name], said.actor)
            _end([(key, ref) for key in keys for ref in whose], reason, now=said.recorded_at, using=using)
    left = _joined(_arrivals(said.name, new, names, using), said, using)
    for _try in range(TRIES):
        if not left:
            return
        # Whoever has begun one before this is read has a row that waits; whoever does so later wants the same number.
        before = _last(left, using)
        left = _begun(_joined(left, said, using), before, said, using)
    if left:
        task_key, ref = next(iter(left))
        raise AlreadyOpen(ScheduledTask(task_key=task_key, entity_label=ref.label, entity_id=ref.id))


def _arrivals(
    event: str, new: Mapping[EntityRef, UUID], names: Mapping[EntityRef, Sequence[EntityRef]], using: str
) -> dict[Place, Arrival]:
    found: dict[Place, Arrival] = {}
    for definition in registry if get_settings().AUTOSTART else ():
        for name, debounce in debounced(definition):
            if event not in debounce.events:
                continue
            label, key = debounce.label(definition), definition.task_key(name)
            came = [(known, new[ref]) for ref in new for known in names[ref] if known.label == label]
            for ref, event_id in _led(came, definition, debounce, using) if debounce.of else came:
                before = found.get((key, ref))
                count = 1 if before is None else before.events + 1
                found[key, ref] = Arrival(definition.tasks[name], debounce, count, event_id)
    return dict(sorted(found.items(), key=lambda each: each[0]))  # Two who insert the same rows wait in one order.


def _led(
    came: Sequence[tuple[EntityRef, UUID]], definition: Definition, debounce: Debounce, using: str
) -> Iterator[tuple[EntityRef, UUID]]:
    """The entities to which the foreign key of those leads to which events came; none where it is empty. One statement."""
    if not came:
        return
    model = apps.get_model(debounce.of)
    key, field = model._meta.pk, model._meta.get_field(debounce.by)
    rows = model._base_manager.using(using).filter(Among([key.to_python(ref.id) for ref, _event in came]))
    leads = {str(pk): to for pk, to in rows.values_list("pk", field.attname)}
    for ref, event_id in came:
        if (to := leads.get(ref.id)) is not None:
            yield EntityRef(definition.label, str(to)), event_id


def _rows(places: Iterable[Place], using: str) -> ScheduledTaskQuerySet:
    """The rows of bursts of these tasks and entities, and perhaps of others: more than what was asked for."""
    places = list(places)
    return ScheduledTask.objects.using(using).filter(
        run__isnull=True,
        task_key__in={key for key, _ref in places},
        entity_label__in={ref.label for _key, ref in places},
        entity_id__in={ref.id for _key, ref in places},
        occurrence__startswith=NUMBERED,
    )


def _place(row: ScheduledTask) -> Place:
    return row.task_key, row.entity_ref


def _end(places: Sequence[Place], reason: Reason, *, now: datetime, using: str) -> None:
    """Cancel what is open of bursts, but for a task whose own handler has caused this: it records its own outcome."""
    if not places:
        return
    rows = _rows(places, using).filter(state__in=OPEN).exclude(pk__in=running()).by_id().locked()
    writes = [Write(task=row, triggers=(Trigger.CANCEL,), reason=reason) for row in rows if _place(row) in set(places)]
    done = apply(writes, now=now, using=using)
    for tell in hooks().ends if done else ():
        tell(done, now=now, using=using)


def _joined(arrivals: dict[Place, Arrival], said: Said, using: str) -> dict[Place, Arrival]:
    """Let events join rows that wait; gives those for which none waits."""
    if not arrivals:
        return {}
    rows = _rows(arrivals, using).filter(state__in=JOINED).by_id().locked()
    # Of several, the last burst: an earlier one that failed and is run again is due at once, and knows of no quiet.
    ordered = sorted(rows, key=lambda row: (row.occurrence, row.revision))
    waiting = {_place(row): row for row in ordered if _place(row) in arrivals}
    told, writes = [], []
    for place, row in waiting.items():
        arrival = arrivals[place]
        burst = _burst_of(row, arrival, said)
        payload = row.payload if isinstance(row.payload, dict) else {}
        told.append((row, arrival.last, {**payload, BURST: burst}))
        latest = moment_in(burst["latest_at"])
        due = arrival.debounce.due_at(said.recorded_at, latest)
        # One that is due stays so; and who has decided when it is due is not overruled.
        if row.scheduled_at > said.recorded_at and row.planned_at is not None and due != row.scheduled_at:
            writes.append(_put_off(row, due, latest, arrival, said))
    apply(writes, now=said.recorded_at, using=using)
    _note(told, using)
    return {place: arrival for place, arrival in arrivals.items() if place not in waiting}


def _burst_of(row: ScheduledTask, arrival: Arrival, said: Said) -> dict[str, Any]:
    """What a row stands for, with the events that came now; only these, if nobody can read what it says."""
    last_at = _text(said.recorded_at)
    try:
        burst: dict[str, Any] = row.payload[BURST]
        count = index(burst["events"]) + arrival.events
        is_read = burst["latest_at"] is None or moment_in(burst["latest_at"]) is not None
    except (LookupError, TypeError):
        is_read = False
    if not is_read:
        return _first(arrival, row.created_at) | {"last_at": last_at}
    return burst | {"events": count, "last_at": last_at}


def _first(arrival: Arrival, now: datetime) -> dict[str, Any]:
    latest = arrival.debounce.latest_at(now)
    return {
        "events": arrival.events,
        "first_at": _text(now),
        "last_at": _text(now),
        "latest_at": None if latest is None else _text(latest),
    }


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def _put_off(row: ScheduledTask, due: datetime, latest: datetime | None, arrival: Arrival, said: Said) -> Write:
    times = Times(
        nominal_at=due,
        scheduled_at=due,
        anchor=row.anchor,
        anchor_value=row.anchor_value,
        anchor_date=row.anchor_date,
        expires_at=expiry_at(row.task_key, due),
        planned_at=due,
    )
    reason = PUT_OFF(event=said.name, at=due)
    if latest is not None:
        reason = PUT_OFF_TO(event=said.name, at=due, last=latest)
    return Write(task=row, times=times, reason=reason, evidence={"event": str(arrival.last)})


def _note(told: Sequence[tuple[ScheduledTask, UUID, dict[str, Any]]], using: str) -> None:
    """Write which event was the last of each row, which are locked, and what the row stands for. One statement."""
    if not told:
        return
    dialect = dialect_of(using)
    rows = [(row.pk.hex, event_id.hex, json.dumps(payload)) for row, event_id, payload in told]
    asked: dict[str, Any] = {"rows": json.dumps(rows)}
    if dialect.has_arrays:
        asked = dict(zip(("ids", "causes", "payloads"), map(list, zip(*rows, strict=True)), strict=True))
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("note_bursts"), asked)


def _last(places: Iterable[Place], using: str) -> dict[Place, str]:
    """The occurrence of the last burst of each place that has had one."""
    rows = _rows(places, using).values_list("task_key", "entity_label", "entity_id")
    return {(key, EntityRef(*ref)): name for key, *ref, name in rows.annotate(last=Max("occurrence"))}


def _begun(arrivals: dict[Place, Arrival], before: Mapping[Place, str], said: Said, using: str) -> dict[Place, Arrival]:
    """Begin bursts, each after the last; gives those that somebody else has begun meanwhile."""
    rows = [_row(place, arrival, before.get(place, ""), said.recorded_at) for place, arrival in arrivals.items()]
    there = {_place(row) for row in create_missing(rows, using=using)}
    return {place: arrival for place, arrival in arrivals.items() if place not in there}


def _row(place: Place, arrival: Arrival, before: str, now: datetime) -> ScheduledTask:
    (task_key, ref), declared = place, arrival.declared
    number = before.removeprefix(NUMBERED)
    burst = _first(arrival, now)
    due = arrival.debounce.due_at(now, arrival.debounce.latest_at(now))
    return ScheduledTask(
        task_key=task_key,
        entity_label=ref.label,
        entity_id=ref.id,
        occurrence=f"{NUMBERED}{int(number) + 1 if number.isdecimal() else 1:012}",
        cause_id=arrival.last,
        payload={BURST: burst},
        state=State.SCHEDULED,
        nominal_at=due,
        scheduled_at=due,
        planned_at=due,
        created_at=now,
        expires_at=expiry_at(task_key, due),
        **options_of(declared),
        **columns_of(task_key, declared),
    )
