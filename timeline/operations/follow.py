"""Follow an entity: change its runs after a row of a host's model was saved or deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo

from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q
from django.utils import timezone

from timeline import reasons
from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.definition import Created, Definition
from timeline.exceptions import InvalidInput
from timeline.hooks import hooks
from timeline.lifecycle import RunEnd
from timeline.models import EntityRef, ScheduledTask, TimelineRun, family_of, model_of, ref_of
from timeline.models.entities import children_following, key_as, naming, refs_as
from timeline.models.facts import zone_of
from timeline.operations.current import running
from timeline.operations.leave import cancel_each
from timeline.operations.reconcile import reconcile_locked
from timeline.operations.start import start_locked
from timeline.planning import TaskRow, plan
from timeline.registry import registry
from timeline.runs import end
from timeline.store.locks import lock_entity_now, lock_runs
from timeline.store.run_insert import constantly
from timeline.store.signal_dispatch import TOLD_OF
from timeline.store.transactions import atomic, in_transaction
from timeline.timing import as_anchor_value

Anchors = Mapping[str, datetime | None]


def entity_created(*, entity: Model | EntityRef, now: datetime | None = None, using: str) -> None:
    """
    Start the runs that an inserted row starts, unless ``TIMELINE["AUTOSTART"]`` is off. None starts if the row cannot be seen:
    another receiver may have deleted it, or the model's base manager hides it.
    """
    ref = ref_of(entity)
    definitions = registry.started_by_creation(ref.label)
    if not definitions or not get_settings().AUTOSTART:
        return
    read = any(definition.followed_fields for definition in definitions)
    with in_transaction(using):
        entities, now = lock_entity_now(ref, gone=True, read=read, fresh=False, now=now, using=using)
        start_locked(definitions, entities, begins=constantly(now), now=now, using=using)


def entity_saved(
    *, refs: Iterable[EntityRef], fields: Collection[str] | None, now: datetime | None = None, using: str
) -> None:
    """
    Let the tasks of an entity's open runs follow its anchors and its time zone. One query if it has no such run.

    ``refs``: its names, one for each model of its family that was saved. ``fields``: those saved; None: all.

    Raises:
        DateOutOfRange, NaiveDatetime: if a stored value cannot be followed. A save in a transaction is undone with it;
            otherwise it stands, and the tasks stay as they were.
    """
    runs = _runs_following(refs, fields, using)
    if not runs:
        return
    with in_transaction(using):
        locked = lock_runs([run.pk for run in runs], {run.entity_ref for run in runs}, using=using)
        reconcile_locked(locked.runs, locked.entities, now=now or story_now(using), using=using)


def _runs_following(refs: Iterable[EntityRef], fields: Collection[str] | None, using: str) -> list[TimelineRun]:
    """Open runs whose timelines follow one of the fields. No query if no timeline does."""
    concerned = Q()
    for ref in refs:
        following = registry.following(ref.label)
        if names := [known.name for known in following if fields is None or _follows(known) & set(fields)]:
            concerned |= naming(ref) & Q(timeline__in=names)
    if not concerned:
        return []
    return list(TimelineRun.objects.using(using).open().filter(concerned).only("entity_label", "entity_id"))


def _follows(definition: Definition) -> frozenset[str]:
    return definition.followed_fields | definition.awaited_fields


def entity_deleted(*, ref: EntityRef, now: datetime | None = None, using: str) -> None:
    """End the runs of a deleted entity and cancel its open tasks, also ad hoc tasks. Their rows stay as its history."""
    reason = reasons.DELETED()
    with atomic(using=using, savepoint=False):
        for tell in hooks().deletions:
            tell(ref, using=using)
        runs = list(TimelineRun.objects.using(using).open().filter(naming(ref)).locked())
        open_tasks = ScheduledTask.objects.using(using).open().filter(naming(ref)).exclude(pk__in=running())
        tasks = list(open_tasks.by_id().locked().only(*TOLD_OF, "slot"))
        if not runs and not tasks:
            return
        now = now or story_now(using)
        end(runs, RunEnd.ENTITY_GONE, reason.text, now=now, using=using)
        cancel_each(tasks, reason=reason, now=now, using=using)


def refuse_misfits(entity: Model, *, fields: Collection[str] | None, using: str) -> None:
    """
    Raise ``DateOutOfRange`` if a run that is or would be open cannot follow a date about to be saved. Only such dates take
    queries. Values that only the database knows are checked in ``entity_saved``. A datetime without a zone gets the default
    zone.
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
