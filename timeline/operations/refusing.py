"""Refuse: raise for a date that the open runs of an entity cannot follow, before it is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo

from django.core.exceptions import ValidationError
from django.db.models import Field, Model
from django.utils import timezone

from timeline.conf import get_settings
from timeline.definition import Created, Definition
from timeline.exceptions import InvalidInput
from timeline.models import EntityRef, ScheduledTask, TimelineRun, family_of, model_of
from timeline.models.entities import children_following, key_as, naming, refs_as
from timeline.models.facts import zone_of
from timeline.planning import TaskRow, plan
from timeline.registry import registry
from timeline.timing import as_anchor_value

Anchors = Mapping[str, datetime | None]


def refuse_misfits(entity: Model, *, fields: Collection[str] | None, using: str) -> None:
    """
    Check the dates with which an instance is about to be saved. There are queries only for dates that do not fit.

    Values that only the database knows (an expression, a field that was not read, a field that is filled in when it is saved)
    are checked when the saved row is read again; see ``entity_saved``. A datetime without a zone gets the default zone, as in
    Django.

    Args:
        entity: The instance with the values to write.
        fields: Names of the fields that are written; None: all.
        using: Database alias it is saved to.

    Raises:
        DateOutOfRange: naming the field, if a run that is open, or would be started, cannot follow it.
    """
    own = family_of(entity.__class__)
    for definition in registry:
        anchors = _written(entity, definition.anchor_fields, fields) if definition.anchor_fields else {}
        model = model_of(definition.label) if anchors else None
        if model is None or not (model in own or own[0] in family_of(model)):
            continue
        try:
            _check(definition, anchors, timezone.get_default_timezone())
        except InvalidInput:
            _confirm(definition, anchors, entity, model, fields, using)


def _written(entity: Model, names: Collection[str], fields: Collection[str] | None) -> Anchors:
    """The anchors that are about to be written, if the instance has their values."""
    columns = {column.name: column for column in entity._meta.concrete_fields}
    values = {}
    for name in names & columns.keys() if fields is None else names & columns.keys() & set(fields):
        given = vars(entity).get(columns[name].attname)  # None also if the field was not read.
        if given is None or hasattr(given, "resolve_expression") or _is_filled_in(columns[name]):
            continue
        try:
            value = columns[name].to_python(given)
            naive = isinstance(value, datetime) and timezone.is_naive(value)
            values[name] = timezone.make_aware(value, timezone.get_default_timezone()) if naive else value
        except (ValidationError, TypeError, ValueError):
            continue  # Django itself refuses this value.
    return values


def _is_filled_in(column: Field[object, object]) -> bool:
    return getattr(column, "auto_now", False) or getattr(column, "auto_now_add", False)


def _check(
    definition: Definition,
    anchors: Anchors,
    zone: tzinfo,
    *,
    rows: Iterable[TaskRow] = (),
    started_at: datetime | None = None,
) -> None:
    """Plan with only these anchors. Nothing is written, so the value of now does not matter."""
    now = datetime.now(UTC)
    known = {name: as_anchor_value(value, zone, name) for name, value in anchors.items()}
    plan(definition, started_at=started_at or now, anchors=known, rows=rows, zone=zone, now=now)


def _confirm(
    definition: Definition,
    anchors: Anchors,
    entity: Model,
    model: type[Model],
    fields: Collection[str] | None,
    using: str,
) -> None:
    """Check again for the runs that exist or would be started; raises if one of them cannot follow."""
    zone = zone_of(definition, entity)
    key = key_as(entity, model) if model in family_of(entity.__class__) else None
    if _starts(definition, entity, model, key, using):
        _check(definition, anchors, zone)
    for ref in _concerned(entity, model, key, fields, using):
        for run in TimelineRun.objects.using(using).open().filter(naming(ref), timeline=definition.name):
            rows = ScheduledTask.objects.using(using).filter(run=run)
            _check(definition, anchors, zone, rows=rows, started_at=run.started_at)


def _starts(definition: Definition, entity: Model, model: type[Model], key: object, using: str) -> bool:
    if Created() not in definition.starts_on or not entity._state.adding or not get_settings().AUTOSTART:
        return False
    if model not in family_of(entity.__class__):
        return False
    return key is None or not model._base_manager.using(using).filter(pk=key).exists()


def _concerned(
    entity: Model, model: type[Model], key: object, fields: Collection[str] | None, using: str
) -> Iterator[EntityRef]:
    """The entity as an instance of the model; or, if the model is a child of its model, the child that inherits the values."""
    if key is not None:
        yield from refs_as(entity, [model])
    elif entity.pk is not None and model not in family_of(entity.__class__):
        yield from (
            ref for ref in children_following(entity, fields, using=using) if ref.label == model._meta.label_lower
        )
