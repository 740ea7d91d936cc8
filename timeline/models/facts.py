"""What a plan needs: what an entity says about time (anchors, time zone), the rows of a run, and its tries. And the plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from functools import lru_cache
from typing import Any, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Count, F, Field, Max, Model, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.exceptions import InvalidInput, UnreadableEntity
from timeline.models.entities import is_of_the_row
from timeline.models.machine_rows import RENAMED, RunEntry
from timeline.models.run import TimelineRun
from timeline.planning import Plan, TaskRow, VisitPlace, plan
from timeline.timing import When, as_anchor_value

Known = Sequence[tuple[TimelineRun, Definition]]


def zone_of(definition: Definition, entity: Model | None) -> tzinfo:
    """The zone that a field of the entity has, or the site's; ``UnreadableEntity`` if it is a property that raises."""
    named = _read(entity, definition.cls.time_zone) if definition.cls.time_zone else ""
    if isinstance(named, tzinfo):
        return named
    try:
        return ZoneInfo(named) if named else timezone.get_default_timezone()
    except (KeyError, ValueError, OSError):
        return timezone.get_default_timezone()


def language_of(definition: Definition, entity: Model | None) -> str:
    """The language code of an entity, or empty; ``UnreadableEntity`` as in ``zone_of``."""
    return str(_read(entity, definition.cls.language) or "")


def _read(entity: Model | None, name: str) -> Any:
    """Read a field of an entity, or a property of the host's. Empty if there is no entity or no name."""
    if entity is None or not name:
        return ""
    try:
        return getattr(entity, name, "")
    except Exception as error:
        if not is_of_the_row(error):
            raise
        raise UnreadableEntity.because(f"{name} of {entity._meta.label_lower} {entity.pk}", error) from error


def anchors_of(definition: Definition, entity: Model | None) -> dict[str, datetime | None]:
    """The fields that tasks are anchored to; ``NaiveDatetime`` or ``DateOutOfRange`` names the field."""
    return _instants(_values(definition, entity), zone_of(definition, entity))


class Facts(TypedDict):
    """What a plan needs of an entity; see ``timeline.planning.plan``."""

    anchors: dict[str, datetime | None]
    dates: dict[str, date]
    zone: tzinfo


def facts_in(definition: Definition, entity: Model | None) -> Facts:
    """What a plan needs of an entity; ``NaiveDatetime`` or ``DateOutOfRange`` names the field."""
    values, zone = _values(definition, entity), zone_of(definition, entity)
    dates = {name: value for name, value in values.items() if _is_date(value)}
    return {"anchors": _instants(values, zone), "dates": dates, "zone": zone}


def _values(definition: Definition, entity: Model | None) -> dict[str, Any]:
    """The values of the fields that are anchors of tasks: dates and datetimes."""
    if entity is None:
        return {}
    # An instance that was not read from the database may still have the values that it was given, such as text.
    columns = _columns(entity.__class__, definition.anchor_fields)
    return {column.name: column.to_python(getattr(entity, column.name)) for column in columns}


@lru_cache(maxsize=256)
def _columns(model: type[Model], names: frozenset[str]) -> list[Field[Any, Any]]:
    return [column for column in model._meta.concrete_fields if column.name in names]


def _instants(values: Mapping[str, Any], zone: tzinfo) -> dict[str, datetime | None]:
    return {name: as_anchor_value(value, zone, name) for name, value in values.items()}


def _is_date(value: object) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


def moment_in(field_name: str, definition: Definition, entity: Model | None) -> datetime:
    """The moment in a field of an entity, from which a run counts; errors as ``as_anchor_value``, ``InvalidInput`` if empty."""
    moment = as_anchor_value(getattr(entity, field_name), zone_of(definition, entity), field_name)
    if moment is None:
        said = {"name": field_name, "model": definition.label, "key": entity.pk if entity else ""}
        problem = _("%(name)s of %(model)s %(key)s is not set.")
        raise InvalidInput("started_at", problem, _("Set it, or leave the entity out."), **said)
    return moment


def plan_of(
    run: TimelineRun,
    definition: Definition,
    entity: Model | None,
    rows: Iterable[TaskRow],
    *,
    now: datetime,
    spare: Collection[UUID] = (),
    tries: Mapping[UUID, int] | None = None,
    foresees: bool = True,
    cancels_undefined: bool = False,
) -> Plan:
    """
    Plan a run from its rows and its entity, with the flags of ``timeline.planning.plan`` and the errors of ``facts_in``.

    A run that is missing in ``tries`` (of ``tries_of``) keeps its times. ``TIMELINE["CANCEL_UNDEFINED"]`` cancels, too.
    """
    about = (run.entity_label, run.entity_id, run.key)
    # A run that began before its timeline was a machine has no state: it ends as it would have ended then.
    by_table, place = definition.machine is not None and bool(run.state), None
    if by_table and run.state_at is not None:
        place = VisitPlace(run.state, run.state_at, run.moves, (tries or {}).get(run.id))
    return plan(
        definition,
        started_at=run.started_at,
        rows=rows,
        **facts_in(definition, entity),
        about=about,
        by_table=by_table,
        place=place,
        now=now,
        spare=spare,
        foresees=foresees,
        cancels_undefined=cancels_undefined or get_settings().CANCEL_UNDEFINED,
    )


def is_of_visit(task: TaskRow, run: TimelineRun, when: When) -> bool:
    """Whether the row of a task that is bound to states belongs to the present visit of its run to a state."""
    return run.state in when.during and task.occurrence == str(run.moves)


@dataclass(frozen=True, slots=True)
class RowsToPlan:
    """The rows from which runs are planned. Ended rows of earlier visits to a state are left out: all moves cost the same."""

    whole: list[UUID]  # Runs of which all rows are read.
    in_states: list[UUID]  # Runs of which open rows are read, and of ended ones those with the following keys.
    others: list[str]  # Keys of tasks that are not bound to states.
    bound: list[str]
    visits: list[str]  # Which rows of bound tasks: the occurrences of the present visits.


def wanted_of(known: Known, *, moved: bool = False) -> RowsToPlan:
    """Which rows to read to plan some runs. After a run has ``moved``, no row of its present visit can have ended."""
    whole = [run.id for run, definition in known if not definition.in_states]
    others, bound, visits, in_states = set[str](), set[str](), set[str](), list[UUID]()
    for definition, runs in _by_definition(known):
        keys = {definition.task_key(name) for name in definition.in_states}
        others |= {definition.task_key(name) for name in definition.tasks} - keys
        in_states += [run.id for run in runs]
        if not moved:
            bound |= keys
            visits |= {str(run.moves) for run in runs}
    return RowsToPlan(whole, in_states, sorted(others), sorted(bound), sorted(visits))


def tries_of(known: Known, *, using: str) -> dict[UUID, int]:
    """
    Run → its entries into its present state since the last move between working states, at least 1.

    Only for states where tasks come later with each try. One statement for each machine with such runs.
    """
    waiting = [(run, definition) for run, definition in known if run.state and run.state in definition.backing_off]
    tries: dict[UUID, int] = {}
    for definition, runs in _by_definition(waiting):
        working = sorted(definition.machine.working) if definition.machine else []
        entries = RunEntry.objects.using(using)
        moves = entries.filter(run=OuterRef("run"), from_state__in=working, to_state__in=working)
        progress = moves.exclude(from_state=F("to_state")).values("run").annotate(last=Max("seq")).values("last")
        since = entries.filter(run__in=[run.pk for run in runs], seq__gt=Coalesce(Subquery(progress), -1))
        since = since.exclude(event=RENAMED, from_state=F("to_state"))  # It changed only ``back``.
        counts = since.values("run", "to_state").annotate(number=Count("pk")).values_list("run", "to_state", "number")
        counted = {(run_id, state): number for run_id, state, number in counts}
        tries |= {run.pk: max(counted.get((run.pk, run.state), 0), 1) for run in runs}
    return tries


def _by_definition(known: Known) -> list[tuple[Definition, list[TimelineRun]]]:
    """Runs by their timelines, for timelines that have tasks bound to states."""
    found: dict[str, tuple[Definition, list[TimelineRun]]] = {}
    for run, definition in known:
        if definition.in_states:
            found.setdefault(definition.name, (definition, []))[1].append(run)
    return list(found.values())
