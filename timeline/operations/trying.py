"""Try: do something, look at what came of it, and undo all of it. Nothing of it is ever committed, or told to anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput
from timeline.models import EntityRef, exact_ref, model_of
from timeline.models.families import kinds_of
from timeline.operations.emitting import emit
from timeline.operations.reconciling import reconcile
from timeline.registry import registry
from timeline.store.isolating import atomic
from timeline.store.locking import missing
from timeline.timing import check_time

Seen = TypeVar("Seen")


def try_out(
    look: Callable[[], Seen],
    *,
    ref: EntityRef,
    fields: Mapping[str, Any],
    event: str,
    payload: dict[str, Any],
    now: datetime,
    using: str,
) -> tuple[Seen, Seen]:
    """
    Look before and after fields of an entity are changed and an event is emitted; then undo both. They are done by what does
    them otherwise, so that the answer cannot differ from what would come of it. The entity is locked meanwhile.

    Args:
        look: Asks the database, in the transaction.
        ref: The entity.
        fields: Of its fields that tasks are anchored to, those that change: what they would hold.
        event, payload: What is emitted after that; no name: nothing.
        now: Story time.
        using: Database alias.

    Returns:
        What was seen before, and after.

    Raises:
        InvalidInput, DateOutOfRange, NaiveDatetime: naming the field.
        WrongEntity: if the entity is not in this database.
        Whatever ``emit`` raises: of what the event would be refused for.
    """
    model = model_of(ref.label) if exact_ref(*ref) else None
    checked = {name: _checked(ref, model, name, value) for name, value in fields.items()}
    entities = model._base_manager.using(using).filter(pk=ref.id) if model is not None else None
    if entities is None or not entities.exists():
        raise missing(ref, using)
    with atomic(using=using):
        before = look()
        if checked:
            entities.update(**checked)
            reconcile(entity=ref, now=now, using=using)
        if event:
            given: dict[str, Any] = {"key": "", "payload": payload, "actor": "", "occurred_at": None}
            emit(name=event, entity=ref, now=now, using=using, **given)
        after = look()
        transaction.set_rollback(True, using=using)
    return before, after


def anchors_of(label: str) -> list[str]:
    """Fields of this kind of entity that tasks are anchored to."""
    kinds = kinds_of(label)
    return sorted({name for known in registry if known.label in kinds for name in known.anchor_fields})


def _checked(ref: EntityRef, model: type[Model] | None, name: str, value: Any) -> Any:
    """What the field would hold."""
    if model is None or name not in (names := anchors_of(ref.label)):
        remedy = _("Give one of %(names)s.")
        known = ", ".join(names) if model is not None else ""
        raise InvalidInput(name, _("no task is anchored to it."), remedy, names=known)
    try:
        field: Any = model._meta.get_field(name)
        read = field.to_python(value)
    except ValidationError as error:
        remedy = _("Give a date, or a time with its zone.")
        raise InvalidInput(name, "%(error)s", remedy, error=" ".join(error.messages)) from None
    return check_time(name, read) if isinstance(read, datetime) else read
