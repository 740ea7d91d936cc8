"""Adopt rows for a machine: begin runs for rows that are older than it, each in the state that a column of its row says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Count, Model, QuerySet
from django.utils.translation import gettext_lazy as _

from timeline.definition import Definition
from timeline.dialects import Among
from timeline.exceptions import InvalidInput
from timeline.features.machines.declaration import known_state, table_of
from timeline.lifecycle import RunEnd
from timeline.models import EntityRef, model_of
from timeline.models.entities import keys_of, ref_with
from timeline.operations.enroll import blaming_filter, rows_matching, without_run
from timeline.operations.reconcile import reconcile_locked
from timeline.operations.sets import BATCH, Portion, check_batch_size, pages
from timeline.payloads import as_text, check_text
from timeline.registry import registry
from timeline.runs import ending
from timeline.store.changes import MAX_ACTOR
from timeline.store.locks import lock_entities
from timeline.store.run_insert import Beginning, begin_runs, constantly, plan_runs
from timeline.store.transactions import atomic

ADOPTED: Final = "adopted"  # The event in the first entry of such a run.


@dataclass(frozen=True, kw_only=True)
class Adoption:
    """
    The rows to adopt, and how; made by ``plan_adoption``.

    Args:
        column: Field that tells the state of a row.
        states: Value of the field as text (NULL: empty) → state. A value that is missing has to be a state itself.
        skipped: Values whose rows get no run.
        back: State → the state to which its BACK leads.
        with_ended: Whether rows in an end of the table get a run, too, which has ended when it begins.
    """

    definition: Definition
    column: str
    states: Mapping[str, str]
    rows: QuerySet[Model]
    skipped: frozenset[str] = frozenset()
    back: Mapping[str, str] = field(default_factory=dict)
    with_ended: bool = False

    def state_of(self, value: str) -> str | None:
        """The state of rows with this value; None: it is not known."""
        return self.states.get(value, value if value in table_of(self.definition).states else None)

    def is_left_out(self, value: str) -> bool:
        """Whether rows with this value get no run."""
        ended = self.state_of(value) in table_of(self.definition).ends
        return value in self.skipped or (ended and not self.with_ended)


class ValueFound(NamedTuple):
    """A value, the state for it (None: it is not known), how many rows have it, and whether they get no run."""

    value: str
    state: str | None
    rows: int
    is_left_out: bool


class Adopted(NamedTuple):
    """What was done so far: runs begun, and rows left out because they have a run, or are not there or not chosen any more."""

    begun: int = 0
    passed: int = 0


def plan_adoption(
    *,
    machine: str,
    column: str,
    states: Mapping[str, str],
    skipped: frozenset[str] = frozenset(),
    back: Mapping[str, str] | None = None,
    filters: Mapping[str, Any] | None = None,
    with_ended: bool = False,
    using: str,
) -> Adoption:
    """
    Check what can be checked before a row is read. Arguments as for ``Adoption``; ``filters`` are lookups of the model.

    Raises:
        UnknownTimeline: if there is no timeline of this name.
        InvalidInput: naming ``machine``, ``from``, ``map``, ``back`` or ``filter``.
    """
    definition = registry.timeline(machine)
    table_of(definition)
    model = model_of(definition.label)
    if model is None:
        raise InvalidInput("machine", _("is about no entity."), _("Begin its run by hand: start(…)."))
    if definition.key:
        remedy = _("Begin its runs by the events that start them.")
        raise InvalidInput("machine", _("has a key, which no column of its entity says."), remedy)
    known = {value: known_state(definition, "map", state) for value, state in states.items()}
    return Adoption(
        definition=definition,
        column=_column(model, column),
        states=known,
        skipped=skipped,
        back=_ways_back(definition, back or {}),
        with_ended=with_ended,
        rows=rows_matching(model, filters or {}, using=using),
    )


def _ways_back(definition: Definition, back: Mapping[str, str]) -> dict[str, str]:
    table, ways = table_of(definition), {}
    for state, target in back.items():
        if known_state(definition, "back", state) not in table.backing or (state, target) not in table.edges:
            problem = _("%(state)s has no BACK that leads to %(target)s.")
            raise InvalidInput("back", problem, _("Look into the table."), state=state, target=target)
        ways[as_text(state)] = as_text(target)
    return ways


def _column(model: type[Model], name: str) -> str:
    try:
        found = model._meta.get_field(name)
    except FieldDoesNotExist:
        found = None
    if found is None or not getattr(found, "concrete", False):
        names = ", ".join(field.name for field in model._meta.concrete_fields)
        problem = _("%(name)r is no field of %(model)s.")
        raise InvalidInput(
            "from", problem, _("Name one of %(names)s."), name=name, model=model._meta.label, names=names
        )
    return str(found.attname)  # type: ignore[union-attr]


def survey(adoption: Adoption) -> list[ValueFound]:
    """Count the rows by value, in the order of the table's states: one statement. ``InvalidInput``: a bad ``filter``."""
    counted: dict[str, int] = {}
    by_value = adoption.rows.order_by().values_list(adoption.column)
    with blaming_filter(adoption.rows, using=adoption.rows.db):
        values = list(by_value.annotate(_timeline_rows=Count("pk")))
    for value, count in values:
        counted[_said(value)] = counted.get(_said(value), 0) + count
    found = [
        ValueFound(value, adoption.state_of(value), count, adoption.is_left_out(value))
        for value, count in counted.items()
    ]
    order = [None, *table_of(adoption.definition).states]
    return sorted(found, key=lambda known: (order.index(known.state), known.value))


def check_survey(adoption: Adoption, found: list[ValueFound]) -> None:
    """Check that all states are known, and where a BACK leads. Raises ``InvalidInput`` for ``map`` or ``back``."""
    if unknown := [known.value for known in found if known.state is None and not known.is_left_out]:
        problem = _("nobody has said in what state rows are that have %(values)s.")
        raise InvalidInput("map", problem, _("Map each to a state, or skip it."), values=", ".join(map(repr, unknown)))
    backing = table_of(adoption.definition).backing
    for known in found:
        if known.state in backing and known.state not in adoption.back and not known.is_left_out:
            problem, remedy = _("%(state)s has a BACK, and nobody has said to where."), _("Say it: %(state)s=….")
            raise InvalidInput("back", problem, remedy, state=known.state)


def adopt_rows(
    adoption: Adoption, *, size: int = BATCH, actor: str = "", clock: Callable[[str], datetime], using: str
) -> Iterator[Adopted]:
    """
    Begin the runs, with one transaction for each batch; after each, gives what was done so far. Entities with a run are left
    out, so this can be called again after a crash. Nothing of a batch at fault is written.

    Raises:
        InvalidInput: as for ``check_survey``, if a row has another value by now.
        UnreadableEntity: if an entity cannot be read.
    """
    check_batch_size(size)
    check_text("actor", actor, MAX_ACTOR)
    model = adoption.rows.model
    done = Adopted()
    for batch in pages(adoption.rows, model, size, using=using):
        left = without_run(batch, adoption.definition.name, "", once=True)
        begun = _adopt_some(adoption, left, actor, clock(using), using) if left.refs else 0
        done = Adopted(done.begun + begun, done.passed + len(batch.refs) - begun)
        yield done


def _adopt_some(adoption: Adoption, batch: Portion, actor: str, now: datetime, using: str) -> int:
    with atomic(using=using):
        entities = lock_entities(batch.refs, fresh=True, using=using)
        for unreadable in entities.unreadable.values():
            raise unreadable
        # Runs may have begun since the first check. No unique index would refuse a second run if the first one has ended.
        still = without_run(batch._replace(refs=list(entities)), adoption.definition.name, "", once=True).refs
        still = _still_chosen(adoption, still, using)
        states = _states_of(adoption, {ref: entities[ref] for ref in still})
        begun = begin_runs(_beginnings(adoption, states, actor, now), now=now, using=using)
        runs = [beginning.run(using=using) for beginning in begun]
        # The planner decides which tasks the runs have in their states, as always.
        reconcile_locked(runs, entities, now=now, using=using)
    return len(begun)


def _still_chosen(adoption: Adoption, refs: list[EntityRef], using: str) -> list[EntityRef]:
    """Leave out rows that were changed before they were locked, so that the filters do not choose them any more."""
    model = adoption.rows.model
    if not adoption.rows.query.where:
        return refs
    chosen = adoption.rows.using(using).filter(Among(keys_of(model, refs))).values_list("pk", flat=True)
    left = {ref_with(model, key) for key in chosen}
    return [ref for ref in refs if ref in left]


def _states_of(adoption: Adoption, entities: Mapping[EntityRef, Model]) -> dict[EntityRef, str]:
    """The state of each entity that gets a run, read again under its lock."""
    values = {ref: _said(getattr(entity, adoption.column)) for ref, entity in entities.items()}
    found = [
        ValueFound(value, adoption.state_of(value), 1, adoption.is_left_out(value)) for value in set(values.values())
    ]
    check_survey(adoption, found)
    states = {known.value: known.state for known in found if known.state is not None and not known.is_left_out}
    return {ref: states[value] for ref, value in values.items() if value in states}


def _beginnings(adoption: Adoption, states: Mapping[EntityRef, str], actor: str, now: datetime) -> list[Beginning]:
    """Runs in these states, without tasks so far. A run in an end of the table has ended."""
    definition, ends = adoption.definition, table_of(adoption.definition).ends
    still_open = {"ended_at": None, "end_code": "", "end_reason": ""}
    beginnings = plan_runs(
        {definition.label: [definition]},
        dict.fromkeys(states),
        event=ADOPTED,
        actor=actor,
        begins=constantly(now),
        now=now,
    )
    for beginning in beginnings:
        state = states[beginning.ref]
        beginning.planned, beginning.open, beginning.problem = (), True, None
        beginning.change(state=state, back=adoption.back.get(state, ""))
        beginning.change(**(ending(RunEnd.EXIT, state, now=now) if state in ends else still_open))
    return beginnings


def _said(value: object) -> str:
    """A value of the column as text, as ``states`` has it."""
    return "" if value is None else as_text(value) if isinstance(value, str) else str(value)
