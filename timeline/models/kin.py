"""Names of an entity: all that it has in its family, those that one reads rows by, and the one spelling of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import (
    BigIntegerField,
    Case,
    CharField,
    IntegerField,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    UUIDField,
    Value,
    When,
)
from django.db.models.functions import Cast, Replace
from django.db.models.lookups import Exact, IsNull, Regex

from timeline.dialects import dialect_of, target_of
from timeline.exceptions import WrongEntity
from timeline.models.entities import (
    MAX_ID,
    MAX_LABEL,
    NO_ENTITY,
    Bridge,
    EntityRef,
    families,
    has_several_columns,
    label_of,
    model_of,
    naming,
    ref_of,
    ref_with,
    relatives,
)
from timeline.registry import registry

Names = tuple[EntityRef, ...]


def kin_of(refs: Iterable[EntityRef], *, using: str) -> dict[EntityRef, Names]:
    """
    Entity → all its names, the same in the same order by whichever it is given. Under the first, its events are recorded.

    Models that share their key need no query, so a name may be that of a child that this entity is not. Each parent link that
    is not the primary key takes one query for all entities. Of a model that is not installed, only the given name counts.
    """
    _trees, labels, bridges = families()
    found = {ref: _named_by_all(ref, labels.get(ref.label, ())) for ref in refs}
    bridged = {ref: names[0] for ref, names in found.items() if names[0].label in bridges} if bridges else {}
    pairs = _pairs_of(set(bridged.values()), using) if bridged else {}
    for ref, root in bridged.items():
        found[ref] = tuple(name for known in sorted(_reached(root, pairs)) for name in _along_the_key(known))
    return found


def names_of(ref: EntityRef, *, using: str) -> Names:
    """Find all names of one entity; see ``kin_of``."""
    return kin_of([ref], using=using)[ref]


def roots_of(names: Names) -> set[EntityRef]:
    """Of all names of an entity, those whose rows are always locked with it: one, or one for each parent with another key."""
    return {_along_the_key(name)[0] for name in names}


def about_entity(entity: Model | EntityRef | None, *, using: str) -> Q:
    """Condition for rows about this entity, by any of its names; None: rows about no entity."""
    ids: dict[str, list[str]] = defaultdict(list)
    names = names_of(ref_of(entity), using=using)
    if len(names) == 1:
        return naming(names[0])
    for name in names:
        ids[name.id].append(name.label)
    condition = Q()
    for key, labels in ids.items():
        condition |= Q(entity_label__in=labels, entity_id=key)
    return condition


def named_as(ref: EntityRef, label: str) -> EntityRef:
    """The name of an entity by another model, if this shares its key; otherwise the given name."""
    shared = any(label_of(model) == label for model in relatives(ref.label))
    return EntityRef(label, ref.id) if shared else ref


def _along_the_key(ref: EntityRef) -> Names:
    return _named_by_all(ref, families().labels.get(ref.label, ()))


def _named_by_all(ref: EntityRef, labels: tuple[str, ...]) -> Names:
    """The names of an entity with all these labels; only its own name if there are no others."""
    return (ref,) if not labels or labels == (ref.label,) else tuple(EntityRef(label, ref.id) for label in labels)


def _pairs_of(roots: set[EntityRef], using: str) -> dict[EntityRef, set[EntityRef]]:
    """Follow links that are not primary keys, from child to parent and back. Returns: root → other roots of the same entity."""
    pairs: dict[EntityRef, set[EntityRef]] = defaultdict(set)
    ahead, seen = set(roots), set(roots)
    while ahead:
        for bridge in {
            id(bridge): bridge for root in ahead for bridge in families().bridges.get(root.label, ())
        }.values():
            for one, other in _ends_of(bridge, ahead, using):
                pairs[one].add(other)
                pairs[other].add(one)
        ahead = pairs.keys() - seen
        seen |= ahead
    return pairs


def _reached(root: EntityRef, pairs: Mapping[EntityRef, set[EntityRef]]) -> set[EntityRef]:
    reached, ahead = {root}, {root}
    while ahead:
        ahead = {other for one in ahead for other in pairs.get(one, ())} - reached
        reached |= ahead
    return reached


def _ends_of(bridge: Bridge, roots: Iterable[EntityRef], using: str) -> Iterable[tuple[EntityRef, EntityRef]]:
    """For each row of the link of these roots: the root of the child, and the root of the parent."""
    children = keys_within(bridge.child, (root for root in roots if root.label == bridge.root))
    parents = keys_within(bridge.link.related_model, (root for root in roots if root.label == bridge.leads_to))
    if not children and not parents:
        return
    rows: QuerySet[Model] = QuerySet(bridge.child, using=using)
    rows = rows.filter(Q(pk__in=children) | Q(**{f"{bridge.link.attname}__in": parents}))
    child_root, parent_root = model_of(bridge.root), model_of(bridge.leads_to)
    for own, leads_to in rows.values_list("pk", bridge.link.attname):
        if child_root is not None and parent_root is not None and leads_to is not None:
            yield ref_with(child_root, own), ref_with(parent_root, leads_to)


def keys_within(model: type[Model], refs: Iterable[EntityRef]) -> list[Any]:
    """The keys as the database has them. Ids that cannot be keys are left out."""
    keys, field = [], target_of(model._meta.pk)
    for ref in refs:
        with suppress(ValidationError):
            key = field.to_python(ref.id)
            field.run_validators(key)
            keys.append(key)
    return keys


def exact_ref(label: str, key: str) -> EntityRef | None:
    """The name of an entity from given text, both empty: the system; None: no row names one so (``017``). No query."""
    ref = EntityRef(label, key)
    if ref == NO_ENTITY:
        return ref
    fits = 0 < len(label) <= MAX_LABEL and 0 < len(key) <= MAX_ID
    if not fits or label != label.lower() or not can_be_stored(label + key):
        return None
    model = model_of(label)
    if model is None:
        return ref
    try:
        return ref if not has_several_columns(model) and ref_with(model, key) == ref else None
    except WrongEntity:
        return None


def can_be_stored(text: str) -> bool:
    """Whether all databases can store it: PostgreSQL has no NUL, and half a surrogate pair has no encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def sought(text: str, *, using: str) -> Q:
    """Condition for tasks: of this entity (``17``, or ``accounts.user 17`` by any model of its family), or with this id."""
    label, _space, key = text.partition(" ")
    labels = sorted({definition.label for definition in registry})
    condition = Q(entity_label__in=labels, entity_id=text)
    if key and "." in label:
        condition |= about_entity(EntityRef(label.lower(), key.strip()), using=using)
    try:
        return condition | Q(pk=UUID(text))
    except ValueError:
        return condition


_UUID: Final = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_NUMBER: Final = "^(0|-?[1-9][0-9]{0,17})$"


def can_be_looked_up(entities: QuerySet[Any]) -> bool:
    """Whether the database can turn the text in a row into a key of these entities: a number, a UUID, or text."""
    return isinstance(target_of(entities.model._meta.pk), IntegerField | UUIDField | CharField)


def naming_one_of(entities: QuerySet[Any]) -> Q:
    """
    Condition for rows that name one of these entities, whose key ``can_be_looked_up`` in the same database.

    Each row is looked up by primary key, so PostgreSQL can read rows by time and stop at the end of the page. For a list, it
    would read all keys; for a plain ``EXISTS``, hash them once for each part of a union.
    """
    one = entities.filter(pk=_key(entities)).order_by().values("pk")[:1]
    return Q(entity_label=entities.model._meta.label_lower) & Q(IsNull(Subquery(one), False))


def _key(entities: QuerySet[Any]) -> Any:
    """The text in a row as a key; NULL for text that no row would have: a cast would fail, or take ``17x`` for 17."""
    field, text = target_of(entities.model._meta.pk), OuterRef("entity_id")
    if isinstance(field, CharField):
        return text
    is_uuid = isinstance(field, UUIDField)
    if not dialect_of(entities.db).has_strict_casts:
        number = Cast(text, BigIntegerField())
        return Replace(text, Value("-")) if is_uuid else Case(When(Exact(Cast(number, TextField()), text), then=number))
    kind, looks = (UUIDField(), _UUID) if is_uuid else (BigIntegerField(), _NUMBER)
    return Case(When(Regex(text, Value(looks)), then=Cast(text, kind)), output_field=kind)
