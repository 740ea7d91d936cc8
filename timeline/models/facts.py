"""What an entity says about time (its anchors, time zone and language), and the plan of a run that follows from it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, tzinfo
from functools import lru_cache
from typing import Any, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Field, Model
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.exceptions import InvalidInput, UnreadableEntity
from timeline.models.entities import is_of_the_row
from timeline.models.run import TimelineRun
from timeline.planning import Plan, TaskRow, VisitPlace, plan
from timeline.timing import When, as_anchor_value


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
