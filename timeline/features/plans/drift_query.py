"""
Find runs that may have drifted: the database compares many at once, and few are left for the planner.

It compares what the planner reads: anchors of rows, and their times by the distances of offsets. A run that needs more is in
doubt: a machine; tasks that are repeated, fanned out, spread or have a window; fields that are no plain columns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connections
from django.db.models import CharField, DateField, DateTimeField, F, Field, IntegerField, Model
from django.utils import timezone

from timeline.definition import Definition, Task
from timeline.dialects import Among, Dialect, as_array, dialect_of, element_type, fits_in_array, narrowed, target_of
from timeline.lifecycle import ReasonCode
from timeline.models import TimelineRun
from timeline.models.columns import is_read_plainly, plain_column
from timeline.models.entities import model_of
from timeline.planning.answers import LEFT_OPEN
from timeline.registry import registry
from timeline.store.transactions import AS_IT_IS, execute_guided
from timeline.timing import EARLIEST, LATEST, Distances, When, distances_of_days, distances_of_moments

# Rows that ended for these reasons are wanted again, or they end a series. Only the planner can decide about them.
_UNDONE: Final = sorted({*LEFT_OPEN, ReasonCode.UNTIL})

_ANCHOR: Final = "timeline_anchor_"
_INSTANT: Final = re.compile(r"\{instant (?P<column>\S+)\}")


class RunRef(NamedTuple):
    """What is needed of a run to ask about it."""

    id: UUID
    timeline: str
    label: str
    entity_id: str


def pages_of_open_runs(
    timelines: Collection[str], *, after: UUID | None = None, size: int, using: str
) -> Iterator[list[RunRef]]:
    """Pages of the open runs of some timelines, in the order of their ids, after a given id."""
    every_run, names = TimelineRun.objects.using(using), sorted(timelines)
    several = every_run.open().filter(timeline__in=names).order_by("pk")
    open_runs = every_run.open_of_timeline(names[0]) if len(names) == 1 else several
    named = open_runs.values_list("pk", "timeline", "entity_label", "entity_id")
    while page := list(map(RunRef._make, (named if after is None else named.filter(pk__gt=after))[:size])):
        yield page
        after = page[-1].id


def as_uuid(value: UUID | str) -> UUID:
    """The id of a run, from the value that a cursor returns."""
    return value if isinstance(value, UUID) else UUID(value)


def in_doubt(runs: Iterable[RunRef], *, now: datetime, using: str) -> list[UUID]:
    """Open runs that reconciling might change, without locks. One statement for each timeline; unknown ones are left out."""
    grouped: dict[tuple[str, str], list[RunRef]] = {}
    for run in runs:
        grouped.setdefault((run.timeline, run.label), []).append(run)
    found: list[UUID] = []
    for (timeline, label), some in grouped.items():
        if (definition := registry.about(timeline, label)) is not None:
            found += _doubtful(definition, some, now, using)
    return found


def is_told(definition: Definition, *, now: datetime) -> bool:
    """Whether the database can compare runs of a definition. If not, all of them are in doubt."""
    model = model_of(definition.label) if definition.label else None
    return _wanted(definition, model, now) is not None


def open_rows(runs: Sequence[UUID], definition: Definition, *, using: str) -> dict[str, int]:
    """For runs that are not in doubt: name of each task that has rows → how many of the rows are open."""
    dialect, ids = dialect_of(using), [run_id.hex for run_id in runs]
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("open_rows"), {"runs": as_array(ids) if dialect.has_arrays else json.dumps(ids)})
        keys = dict(cursor.fetchall())
    names = {name: definition.task_key(name) for name, task in definition.tasks.items() if task.when is not None}
    return {name: int(keys[key]) for name, key in names.items() if key in keys}


class OldestRuns(NamedTuple):
    """How many of the oldest open runs of a timeline may differ from it, of how many; ``are_all``: it has no others."""

    differing: int
    looked: int
    are_all: bool


def look_at_oldest(definition: Definition, *, most: int, now: datetime, using: str) -> OldestRuns | None:
    """Let the database compare the oldest open runs, without planning any. None: it cannot. Two statements."""
    if not definition.label or not is_told(definition, now=now):
        return None
    some = next(pages_of_open_runs([definition.name], size=most + 1, using=using), [])
    return OldestRuns(len(in_doubt(some[:most], now=now, using=using)), len(some[:most]), len(some) <= most)


def _doubtful(definition: Definition, runs: Sequence[RunRef], now: datetime, using: str) -> list[UUID]:
    every = [run.id for run in runs]
    model = model_of(definition.label) if definition.label else None
    wanted = _wanted(definition, model, now)
    if wanted is None or (definition.label and model is None):
        return every
    known, strange = _keyed(runs, model)
    return strange + _ask(definition, model, wanted, known, now, using) if known else strange


def _keyed(runs: Sequence[RunRef], model: type[Model] | None) -> tuple[list[tuple[UUID, Any]], list[UUID]]:
    """Pairs of a run and the key of its entity; and ids of runs for whose entities no such key exists."""
    if model is None:
        return [(run.id, 0) for run in runs], []
    known, strange, read = list[tuple[UUID, Any]](), list[UUID](), model._meta.pk.to_python
    for run in runs:
        try:
            key = read(run.entity_id)
        except ValidationError:
            key = None
        if key is not None and str(key) == run.entity_id:
            known.append((run.id, key))
        else:
            strange.append(run.id)
    return known, strange


@dataclass(frozen=True, slots=True)
class _WantedTask:
    """A task that gets a row: the field of its anchor, if it has one, and the distances of its time from the anchor."""

    task: Task[Any, ..., Any]
    when: When
    field: Field[Any, Any] | None
    distances: Distances


def _wanted(definition: Definition, model: type[Model] | None, now: datetime) -> list[_WantedTask] | None:
    """The tasks of a definition; None: the database cannot compare them."""
    beyond = definition.repeated or definition.fanned_out or definition.in_states
    if definition.has_states or beyond or not (model is None or is_read_plainly(model)):
        return None
    zone_name = definition.cls.time_zone
    if zone_name and (model is None or plain_column(model, zone_name, CharField) is None):
        return None
    zone, found = timezone.get_default_timezone(), list[_WantedTask]()
    for task in definition.tasks.values():
        if (when := task.when) is None:
            continue
        anchored = model is not None and when.field_name
        field = plain_column(model, when.field_name, DateField, DateTimeField) if model and anchored else None
        in_zone = type(field) is DateField or bool(when.offset.months or when.offset.days)
        planned = not when.predecessor_name or definition.tasks[when.predecessor_name].when is not None
        shifted = task.options.window is not None or task.options.spread is not None
        if shifted or not planned or (when.field_name and field is None) or (zone_name and in_zone):
            return None
        distances = distances_of_days if type(field) is DateField else distances_of_moments
        found.append(_WantedTask(task, when, field, distances(when.offset, zone, now.astimezone(UTC).year)))
    return found


def _ask(
    definition: Definition,
    model: type[Model] | None,
    wanted: Sequence[_WantedTask],
    known: Sequence[tuple[UUID, Any]],
    now: datetime,
    using: str,
) -> list[UUID]:
    connection, dialect = connections[using], dialect_of(using)
    fields = list(dict.fromkeys(each.field for each in wanted if each.field is not None))
    key: Field[Any, Any] = target_of(model._meta.pk) if model is not None else IntegerField()
    if not fits_in_array(key) or not type(key).__module__.startswith("django.db.models."):
        return [run_id for run_id, _key in known]
    names = {name for name, is_so in (("entities", model is not None), ("text", isinstance(key, CharField))) if is_so}
    text, given = narrowed(dialect.sql("in_doubt"), names), dict[str, Any]()
    words = _words(fields, wanted, definition, dialect) | {"key_type": element_type(key, connection)}
    asked = _runs(known, key, using)
    if model is not None:
        among = Among([entity_key for _id, entity_key in known], written=asked.get("keys"))
        words["entities"], given = _entities(model, fields, among, using)
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    text = _INSTANT.sub(lambda found: dialect.instant.format(found["column"]), text)
    given |= {
        "at": connection.ops.adapt_datetimefield_value(now),
        "prefix": definition.task_key(""),
        "undone": dialect.list_of(_UNDONE),
        **asked,
        **_tasks(fields, wanted, definition, dialect),
    }
    with connection.cursor() as cursor:
        execute_guided(cursor, text, given, settings=AS_IT_IS, using=using)
        return [as_uuid(found) for (found,) in cursor.fetchall()]


def _entities(
    model: type[Model], fields: Sequence[Field[Any, Any]], among: Among, using: str
) -> tuple[str, dict[str, Any]]:
    named = {f"{_ANCHOR}{number}": F(field.name) for number, field in enumerate(fields, 1)}
    rows = model._base_manager.using(using).filter(among).annotate(timeline_key=F("pk"), **named)
    sql, values = rows.values_list("timeline_key", *named).query.get_compiler(using).as_sql()
    given = {f"entity_{number}": value for number, value in enumerate(values)}
    return sql.replace("%%", "%%%%") % tuple(f"%({name})s" for name in given), given


def _words(
    fields: Sequence[Field[Any, Any]], wanted: Sequence[_WantedTask], definition: Definition, dialect: Dialect
) -> dict[str, str]:
    """
    What the statement says of anchor fields: ``anchors`` and ``bases`` of times; ``roots``: rows wanted that follow no row.

    ``unanchored``: whether a field that is not set keeps the run open.
    """
    roots = [str(sum(not each.when.field_name and not each.when.predecessor_name for each in wanted))]
    anchors, bases, unanchored = list[str](), list[str](), ["false"]
    for number, field in enumerate(fields, 1):
        column = f"entity.{_ANCHOR}{number}"
        names = [each.task.name for each in wanted if each.field is field]
        base = (dialect.midnight if type(field) is DateField else dialect.instant).format(column)
        anchors.append(f"{base} AS anchor_{number},")
        bases.append(f"WHEN wanted.base = {number} THEN {base if dialect.has_arrays else f'facts.anchor_{number}'}")
        roots.append(f"CASE WHEN {column} IS NULL THEN 0 ELSE {len(names)} END")
        if not definition.aside.issuperset(names):
            unanchored.append(f"{column} IS NULL")
    return {
        "anchors": " ".join(anchors),
        "bases": " ".join(bases),
        "roots": f"({' + '.join(roots)})",
        "unanchored": f"({' OR '.join(unanchored)})",
    }


def _runs(known: Sequence[tuple[UUID, Any]], key: Field[Any, Any], using: str) -> dict[str, Any]:
    connection = connections[using]
    if dialect_of(using).has_arrays:
        keys = as_array(
            [str(entity_key) for _id, entity_key in known]
        )  # Keys of Django's own fields are read as they are written.
        return {"runs": as_array([run_id.hex for run_id, _key in known]), "keys": keys}
    return {"asked": json.dumps([(run_id.hex, key.get_db_prep_value(value, connection)) for run_id, value in known])}


def _tasks(
    fields: Sequence[Field[Any, Any]], wanted: Sequence[_WantedTask], definition: Definition, dialect: Dialect
) -> dict[str, str]:
    after = [(each.when.predecessor_name, each.when.takes_any_end) for each in wanted if each.when.predecessor_name]
    followers, any_followers = Counter(name for name, _any in after), Counter(name for name, is_any in after if is_any)
    tasks = [
        {
            "task_key": definition.task_key(each.task.name),
            "base": _base(each, fields),
            "is_day": type(each.field) is DateField,
            "before": definition.task_key(each.when.predecessor_name),
            "any_end": each.when.takes_any_end,
            "keeps_open": each.task.name not in definition.aside,
            "followers": followers[each.task.name],
            "any_followers": any_followers[each.task.name],
            **(_in_arrays(each.distances) if dialect.has_arrays else {}),
        }
        for each in wanted
    ]
    if dialect.has_arrays:
        return {"tasks": json.dumps(tasks)}
    pieces = [(definition.task_key(each.task.name), *piece) for each in wanted for piece in _in_rows(each.distances)]
    return {"tasks": json.dumps(tasks), "pieces": json.dumps(pieces)}


def _base(each: _WantedTask, fields: Sequence[Field[Any, Any]]) -> int:
    """0: the start of the run; -1: the end of another task; otherwise the number of a field."""
    if each.field is not None:
        return fields.index(each.field) + 1
    return -1 if each.when.predecessor_name else 0


@lru_cache(maxsize=256)
def _in_arrays(distances: Distances) -> Mapping[str, Sequence[str | None]]:
    known = distances.known
    return {
        "begins": [begin.isoformat() for begin in distances.begins],
        "to_anchor": [None if each is None else f"{_micros(each.to_anchor)} microseconds" for each in known],
        "to_time": [None if each is None else f"{_micros(each.to_time)} microseconds" for each in known],
    }


@lru_cache(maxsize=256)
def _in_rows(distances: Distances) -> Sequence[tuple[int, int, int, int]]:
    begins = [_micros(begin - EARLIEST) for begin in distances.begins]
    ends = [*begins[1:], _micros(LATEST - EARLIEST)]
    return [
        (begin, end, _micros(known.to_anchor), _micros(known.to_time))
        for begin, end, known in zip(begins, ends, distances.known, strict=True)
        if known is not None
    ]


def _micros(length: timedelta) -> int:
    return length // timedelta(microseconds=1)
