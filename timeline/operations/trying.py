"""Try: make changes, look at their effects, and undo them. Nothing of it is ever committed, or told to anybody."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import DataError, IntegrityError, transaction
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.models import EntityRef, exact_ref, model_of
from timeline.models.families import kinds_of
from timeline.operations.emitting import emit
from timeline.operations.reconciling_entity import reconcile
from timeline.operations.starting import start
from timeline.registry import registry
from timeline.store.isolating import atomic
from timeline.store.locking import missing
from timeline.timing import check_time

Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """
    The changes to try.

    Args:
        fields: Fields of the entity to which tasks are anchored → their new values.
        timeline: The timeline of which a run is started, with ``key``, ``params`` and ``started_at`` as for ``start``; empty:
            none.
        event, payload: The event to emit; an empty name: none.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    timeline: str = ""
    key: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    started_at: datetime | None = None
    event: str = ""
    payload: dict[str, Any] = field(default_factory=dict)


def try_out(
    look: Callable[[], Seen],
    *,
    ref: EntityRef,
    change: Tried,
    now: datetime,
    using: str,
) -> tuple[Seen, Seen]:
    """
    Look before and after fields of an entity are changed, a run is started and an event is emitted; then undo everything. The
    changes are made by the usual code, so the effects are the same as in earnest. The entity is locked meanwhile.

    Args:
        look: Called in the transaction, before and after; reads the database.
        ref: The entity.
        change: The changes, made in the order above.
        now: Story time.
        using: Database alias.

    Returns:
        What ``look`` gave before, and after.

    Raises:
        InvalidInput, DateOutOfRange, NaiveDatetime: naming the field.
        WrongEntity: if the entity is not in this database.
        Everything that ``start`` and ``emit`` raise.
    """
    model = model_of(ref.label) if exact_ref(*ref) else None
    checked = {name: _checked(ref, model, name, value) for name, value in change.fields.items()}
    entities = model._base_manager.using(using).filter(pk=ref.id) if model is not None else None
    if entities is None or not entities.exists():
        raise missing(ref, using)
    with atomic(using=using):
        before = look()
        if checked:
            _set(entities, checked)
            reconcile(entity=ref, now=now, using=using)
        if change.timeline:
            run: dict[str, Any] = {"key": change.key, "params": change.params, "started_at": change.started_at}
            start(timeline=change.timeline, entity=ref, now=now, using=using, **run)
        if change.event:
            given: dict[str, Any] = {"key": "", "payload": change.payload, "actor": "", "occurred_at": None}
            emit(name=change.event, entity=ref, now=now, using=using, **given)
        after = look()
        transaction.set_rollback(True, using=using)
    return before, after


def anchors_of(label: str) -> list[str]:
    """Fields of this kind of entity that tasks are anchored to."""
    kinds = kinds_of(label)
    return sorted({name for known in registry if known.label in kinds for name in known.anchor_fields})


def not_anchored(name: str, names: Iterable[str]) -> InvalidInput:
    """The error for a field to which no task is anchored. It names the fields to which tasks are anchored."""
    known = ", ".join(names)
    if not known:
        return InvalidInput(name, _("no task is anchored to it."), _("Leave it out."))
    return InvalidInput(name, _("no task is anchored to it."), _("Give one of %(names)s."), names=known)


def _checked(ref: EntityRef, model: type[Model] | None, name: str, value: Any) -> Any:
    """The value that the field would have."""
    names = anchors_of(ref.label)
    if model is None or name not in names:
        raise not_anchored(name, names)
    try:
        column: Any = model._meta.get_field(name)
        read = column.to_python(value)
    except ValidationError as error:
        remedy = _("Give a date, or a time with its zone.")
        raise InvalidInput(name, "%(error)s", remedy, error=" ".join(error.messages)) from None
    if read is None and not column.null:
        raise InvalidInput(name, _("must not be empty."), _("Give a date, or a time with its zone."))
    return check_time(name, read) if isinstance(read, datetime) else read


def _set(entities: QuerySet[Model], values: Mapping[str, Any]) -> None:
    """Change the fields. A value that the host's table refuses is an error of the caller."""
    try:
        entities.update(**values)
    except (IntegrityError, DataError) as error:
        problem, remedy = _("its table does not take that (%(error)s)."), _("Give another one.")
        said = str(error).partition("\n")[0]
        raise InvalidInput(", ".join(sorted(values)), problem, remedy, error=said) from error
