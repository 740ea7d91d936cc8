"""Entities: any model instance, told apart by model label and key as text; how rows name them, load them and lock them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import connections, models
from django.db.models import Q

from timeline.exceptions import WrongEntity
from timeline.models.statements import statement

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LABEL = 100
MAX_ID = 100


class EntityRef(NamedTuple):
    """Names an entity: label of its concrete model (``accounts.user``) and ``str(pk)``. Both empty: no entity."""

    label: str
    id: str

    def __str__(self) -> str:
        return f"{self.label} {self.id}" if self.label else "the system"


NO_ENTITY = EntityRef("", "")


def ref_of(entity: models.Model | EntityRef | None) -> EntityRef:
    """
    Name an entity.

    Raises:
        WrongEntity: if it has no primary key yet, one of the wrong kind, or a longer one than rows hold.
    """
    if entity is None:
        return NO_ENTITY
    if isinstance(entity, EntityRef):
        return entity
    if not isinstance(entity, models.Model):
        raise WrongEntity(f"{entity!r} is no model instance.", "Give an instance of a model, or None.")
    if entity.pk is None:
        raise WrongEntity(f"this {entity._meta.label} has no primary key yet.", "Save it first.")
    concrete = entity._meta.concrete_model
    label = (concrete or type(entity))._meta.label_lower
    try:
        key = str(entity._meta.pk.to_python(entity.pk))  # As it is read, though it may have been given as other text.
    except ValidationError:
        raise WrongEntity(f"{entity.pk!r:.40} is no key of {label}.", "Give one that its field takes.") from None
    if not 0 < len(key) <= MAX_ID or len(label) > MAX_LABEL:
        raise WrongEntity(f"the key of {label} {key:.20} is empty or over {MAX_ID} characters.", "Shorten it.")
    return EntityRef(label, key)


def model_of(label: str) -> type[models.Model] | None:
    """Find the model of a label; None if it is not installed (any more)."""
    try:
        return apps.get_model(label)
    except (LookupError, ValueError):
        return None


def load_entities(refs: Iterable[EntityRef], *, using: str) -> dict[EntityRef, models.Model]:
    """Read entities: one query per model. What is not there is not in the answer."""
    return _by_model(refs, lambda model, keys: model._base_manager.using(using).filter(pk__in=keys))


def lock_entities(refs: Iterable[EntityRef], *, using: str) -> dict[EntityRef, models.Model]:
    """
    Lock the rows of entities, and read them: one statement per model, ordered by key. First in the lock order.

    The lock lets others refer to the row but not change it. What a system timeline is about has no row; a lock of its own
    stands for it. SQLite has neither; its one writer stands for both.
    """
    refs = list(refs)
    if NO_ENTITY in refs and connections[using].vendor == "postgresql":
        with connections[using].cursor() as cursor:
            cursor.execute(statement("lock_system", "postgresql"))

    def locked(model: type[models.Model], keys: list[Any]) -> models.QuerySet[models.Model]:
        return model._base_manager.using(using).filter(pk__in=keys).order_by("pk").select_for_update(no_key=True)

    return _by_model(refs, locked)


def keys_of(model: type[models.Model], refs: Iterable[EntityRef]) -> list[Any]:
    """Convert ids from text to what the model's key is, so that its index serves. What cannot be one names no row."""
    keys = []
    for ref in refs:
        with suppress(ValidationError):
            keys.append(model._meta.pk.to_python(ref.id))
    return keys


def _by_model(
    refs: Iterable[EntityRef], query: Callable[[type[models.Model], list[Any]], models.QuerySet[models.Model]]
) -> dict[EntityRef, models.Model]:
    grouped: dict[str, set[EntityRef]] = defaultdict(set)
    for ref in refs:
        if ref.label:
            grouped[ref.label].add(ref)
    found = {}
    for label in sorted(grouped):
        if (model := model_of(label)) is not None:
            for entity in query(model, keys_of(model, sorted(grouped[label]))):
                found[EntityRef(label, str(entity.pk))] = entity
    return found


def naming(entity: models.Model | EntityRef | None) -> Q:
    """Condition on rows that name this entity; None: rows that name none."""
    ref = ref_of(entity)
    return Q(entity_label=ref.label, entity_id=ref.id)
