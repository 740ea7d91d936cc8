"""Mirroring: write the states of runs where hosts' models show them, any number in one statement a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Case, CharField, Field, Model, Q, QuerySet, Value, When

from timeline.definition import Definition
from timeline.models import EntityRef, TimelineRun
from timeline.models.among import Among
from timeline.models.entities import keys_of
from timeline.models.mirrors import mirror_of
from timeline.models.state_field import tell
from timeline.registry import registry


def mirror_runs(runs: Iterable[TimelineRun], *, using: str) -> int:
    """Write the states that runs are in now; see ``mirror_states``."""
    return mirror_states(((run.timeline, run.entity_ref, run.key, run.state) for run in runs), using=using)


def mirror_states(said: Iterable[tuple[str, EntityRef, str, str]], *, using: str) -> int:
    """
    Write states where their machines show them. The caller has locked the entities: no lock is waited for.

    Rows that have it already are not written. No statement where no machine shows its state. A run with a key is one of
    several of its entity: it is not shown.

    Args:
        said: Name of a machine, entity, key of the run, state.
        using: Database alias.

    Returns:
        How many rows were changed.
    """
    shown = shown_in({known.name: known for known in registry.machines() if known.mirror})
    if not shown:
        return 0
    asked: dict[str, dict[str, list[EntityRef]]] = defaultdict(lambda: defaultdict(list))
    for timeline, ref, key, state in said:
        if state and not key and timeline in shown and shown[timeline][0].label == ref.label:
            asked[timeline][state].append(ref)
    # Models in one order. Whoever emits has locked the rows of all of them.
    return sum(_write(shown[name][1], asked[name], using) for name in sorted(asked))


def shown_in(definitions: Mapping[str, Definition]) -> dict[str, tuple[Definition, Field[Any, Any]]]:
    """Those that have a mirror, by name, each with its field."""
    fields = {name: (known, mirror_of(known)) for name, known in definitions.items()}
    return {name: (known, field) for name, (known, field) in fields.items() if field is not None}


def _write(field: Field[Any, Any], refs: Mapping[str, list[EntityRef]], using: str) -> int:
    keys = {state: keys_of(field.model, some) for state, some in sorted(refs.items())}
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
    """Whether an entity, as it was read, shows another state than its run is in."""
    field = mirror_of(definition) if entity is not None and run.state and not run.key else None
    return field is not None and getattr(entity, field.attname) != run.state


def tell_entity(entity: object, runs: Iterable[TimelineRun]) -> None:
    """Let the instance that a caller has in hand show the states that its runs have come to."""
    if isinstance(entity, Model):
        for run in runs:
            field = mirror_of(registry.about(run.timeline, run.entity_label)) if run.state and not run.key else None
            if field is not None and isinstance(entity, field.model):
                tell(entity, field, run.state)
