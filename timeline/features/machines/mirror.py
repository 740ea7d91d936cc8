"""What shows the state of a run beside the run: fields of the host's models, and the first entries of new runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connections
from django.db.models import Case, CharField, Field, Model, Q, QuerySet, Value, When

from timeline.definition import Definition
from timeline.dialects import Among, array_of, dialect_of, element_type, fits_in_array, target_of
from timeline.ids import uuid7_texts
from timeline.models import EntityRef, RunEntry, StateField, TimelineRun
from timeline.models.entities import keys_of
from timeline.models.state_field import mirror_of, tell
from timeline.registry import registry
from timeline.signals import Entered
from timeline.store.insert import Insertion, columns_of
from timeline.store.signal_dispatch import is_entering_heard, tell_entered

if TYPE_CHECKING:
    from timeline.store.run_insert import Beginning


Said = tuple[str, EntityRef, str, str]  # Name of a machine, entity, key of the run, state.


def mirror_runs(runs: Iterable[TimelineRun], *, using: str) -> int:
    """Write the present states of runs; see ``mirror_states``."""
    return mirror_states(((run.timeline, run.entity_ref, run.key, run.state) for run in runs), using=using)


def mirror_states(said: Iterable[Said], *, using: str) -> int:
    """
    Write states (machine, entity, key, state) to the models that show them; gives how many rows changed. The caller has locked
    the entities, so that this waits for no lock. Rows with that state are not written. A run with a key is not shown, as an
    entity may have several.
    """
    return sum(_write(field, refs, using) for field, refs in _shown(said))


def statement_to_mirror(said: Iterable[Said], *, using: str) -> tuple[str, dict[str, str]] | None:
    """The part of a statement that mirrors states, and its parameters. None: several, no or only Django's statements do."""
    shown = _shown(said)
    if len(shown) != 1 or len(shown[0][1]) != 1:
        return None
    [(field, refs)] = shown
    if not (sql := _statement(field, using)):
        return None
    [(state, some)] = refs.items()
    return sql, _parameters(field, state, keys_of(field.model, some), using)


def _shown(said: Iterable[Said]) -> list[tuple[Field[Any, Any], dict[str, list[EntityRef]]]]:
    """What to write: fields in a fixed order → state → entities. Emitting an event has locked all their rows."""
    fields: dict[tuple[str, str], Field[Any, Any] | None] = {}
    asked: dict[str, dict[str, list[EntityRef]]] = {}
    for timeline, ref, key, state in said:
        about = timeline, ref.label
        if about not in fields:
            fields[about] = mirror_of(registry.about(*about))
        if state and not key and fields[about] is not None:
            asked.setdefault(timeline, defaultdict(list))[state].append(ref)
    shown = {timeline: field for (timeline, _label), field in fields.items() if field is not None}
    return [(shown[timeline], asked[timeline]) for timeline in sorted(asked)]


@lru_cache(maxsize=256)
def _statement(field: Field[Any, Any], using: str) -> str:
    """The text of the statement, made once: Django would make it each time, which takes longer than PostgreSQL needs for it."""
    connection, dialect, meta = connections[using], dialect_of(using), field.model._meta
    key = target_of(meta.pk)
    if not dialect.has_set_statements or not fits_in_array(key) or type(field) is not StateField:
        return ""
    sql = dialect.sql("mirror").replace("{type}", element_type(key, connection))
    for word, name in {"table": meta.db_table, "key": str(meta.pk.column), "column": str(field.column)}.items():
        sql = sql.replace(f"{{{word}}}", connection.ops.quote_name(name).replace("%", "%%"))
    return sql


def _parameters(field: Field[Any, Any], state: str, keys: Iterable[Any], using: str) -> dict[str, str]:
    connection = connections[using]
    array = array_of(target_of(field.model._meta.pk), keys, connection)
    return {"shown": str(field.get_db_prep_save(state, connection)), "shown_to": array}


def _write(field: Field[Any, Any], refs: Mapping[str, Sequence[EntityRef]], using: str) -> int:
    keys = {state: keys_of(field.model, some) for state, some in sorted(refs.items())}
    if len(keys) == 1 and (sql := _statement(field, using)):
        with connections[using].cursor() as cursor:
            cursor.execute(sql, _parameters(field, *next(iter(keys.items())), using))
            return int(cursor.rowcount)
    rows: QuerySet[Model] = QuerySet(field.model, using=using)
    if len(keys) == 1:
        [(only, some)] = keys.items()
        return rows.filter(Among(some)).exclude(**{field.attname: only}).update(**{field.attname: only})
    column = CharField(max_length=field.max_length)
    cases = [When(Q(Among(some)), then=Value(state, output_field=column)) for state, some in keys.items()]
    state = Case(*cases, output_field=column)
    every = [key for some in keys.values() for key in some]
    return rows.filter(Among(every)).exclude(**{field.attname: state}).update(**{field.attname: state})


def shows_another(run: TimelineRun, definition: Definition, entity: Model | None) -> bool:
    """Whether an entity, as it was read, shows another state than the present one of its run."""
    field = mirror_of(definition) if entity is not None and run.state and not run.key else None
    return field is not None and getattr(entity, field.attname) != run.state


def tell_entity(entity: object, runs: Iterable[TimelineRun]) -> None:
    """Set the new states of runs on the instance of the entity that the caller has."""
    if isinstance(entity, Model):
        for run in runs:
            field = mirror_of(registry.about(run.timeline, run.entity_label)) if run.state and not run.key else None
            if field is not None and isinstance(entity, field.model):
                tell(entity, field, run.state)


def inserting_entries(moving: Sequence[Beginning], *, under: str = "", using: str) -> Insertion:
    """The insertion of the first entry of each run. All of them are runs of machines."""
    for beginning, key in zip(moving, uuid7_texts(len(moving)), strict=True):
        beginning.entry_id = key
    rows = [
        {
            "id": beginning.entry_id,
            "run_id": beginning.id,
            "seq": 0,
            "at": beginning.alike["state_at"],
            "to_state": beginning.alike["state"],
            "back": beginning.alike.get("back", ""),
            "event": beginning.event,
            "cause_id": beginning.started_by_id,
            "actor": beginning.actor,
        }
        for beginning in moving
    ]
    return Insertion(RunEntry, columns_of(rows), under=under, taken=False, using=using)


def show_begun(moving: Sequence[Beginning], *, using: str) -> None:
    """Write the states to the entities that show them (no statement if none do), and send the signals, before the commit."""
    said = [(known.alike["timeline"], known.ref, known.alike["key"], known.alike["state"]) for known in moving]
    mirror_states(said, using=using)
    if is_entering_heard():
        tell_entered([_entered(beginning) for beginning in moving], using=using)


def _entered(beginning: Beginning) -> Entered:
    columns = beginning.columns
    return Entered(
        entry_id=UUID(beginning.entry_id),
        run_id=columns["id"],
        timeline=columns["timeline"],
        key=columns["key"],
        entity_label=columns["entity_label"],
        entity_id=columns["entity_id"],
        seq=0,
        from_state="",
        to_state=columns["state"],
        event=beginning.event,
        at=columns["state_at"],
    )
