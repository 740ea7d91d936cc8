"""Families: models that are about the same entity, by multi-table inheritance and as proxies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from django.apps import apps
from django.db.models import (
    BigIntegerField,
    Case,
    CharField,
    IntegerField,
    Model,
    OneToOneField,
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

_UUID: Final = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_NUMBER: Final = "^(0|-?[1-9][0-9]{0,17})$"


class Bridge(NamedTuple):
    """A parent link that is not the primary key of the child. ``root``, ``leads_to``: labels of the roots of both trees."""

    child: type[Model]
    link: OneToOneField[Any, Any]
    root: str
    leads_to: str


class Families(NamedTuple):
    """
    ``trees``: label (of a proxy, too) → the models that share its key, parents first. ``labels``: label → their labels.

    ``bridges``: label of a root → bridges from its tree to others, and from others to it.
    """

    trees: Mapping[str, tuple[type[Model], ...]]
    labels: Mapping[str, tuple[str, ...]]
    bridges: Mapping[str, list[Bridge]]


class _KnownFamilies:
    """The families that were found, and for which models: Django gives the same list until other models are installed."""

    models: Iterable[type[Model]] = ()
    families = Families({}, {}, {})


_known: Final = _KnownFamilies()


def families() -> Families:
    """The families of the installed models."""
    models = apps.get_models()
    if _known.models is not models:
        _known.families = _found(models)
        _known.models = models
    return _known.families


def relatives(label: str) -> tuple[type[Model], ...]:
    """Models that share their key with this one, and the model itself; none if it is not installed. See ``Families``."""
    return families().trees.get(label, ())


def kinds_of(label: str) -> set[str]:
    """All labels that an entity with this label may have, at least this one; also across links that are no primary keys."""
    _trees, labels, bridges = families()
    reached, ahead = {label}, [label]
    while ahead:
        found = set(tree := labels.get(ahead.pop(), ()))
        across = bridges.get(tree[0], ()) if tree else ()
        found |= {root for bridge in across for root in (bridge.root, bridge.leads_to)}
        ahead += found - reached
        reached |= found
    return reached


def place_of(label: str) -> tuple[str, int]:
    """The place of a model in the lock order: one tree after the other, and in each the parents before their children."""
    tree = families().labels.get(label)
    return (tree[0], tree.index(label)) if tree else (label, 0)


def concrete_of(model: type[Model]) -> type[Model]:
    """The model itself, or the concrete model of a proxy."""
    return model._meta.concrete_model or model


def _found(models: Iterable[type[Model]]) -> Families:
    members: dict[str, list[tuple[int, str, type[Model]]]] = defaultdict(list)
    concrete = [model for model in models if not model._meta.proxy]
    for model in concrete:
        line = line_of(model)
        members[_label(line[-1])].append((len(line), _label(model), model))
    by_root = {
        root: tuple(model for _depth, _label, model in sorted(found, key=_place)) for root, found in members.items()
    }
    trees = {_label(model): by_root[_label(line_of(concrete_of(model))[-1])] for model in models}
    bridges: dict[str, list[Bridge]] = defaultdict(list)
    for model in concrete:
        for parent, link in model._meta.parents.items():
            if not isinstance(link, OneToOneField) or link.model is not model or link.primary_key:
                continue
            bridge = Bridge(model, link, _label(line_of(model)[-1]), _label(line_of(concrete_of(parent))[-1]))
            if bridge.root != bridge.leads_to:  # Otherwise it is another way to the same root, as in a diamond.
                bridges[bridge.root].append(bridge)
                bridges[bridge.leads_to].append(bridge)
    return Families(trees, {label: tuple(map(_label, tree)) for label, tree in trees.items()}, bridges)


def _place(found: tuple[int, str, type[Model]]) -> tuple[int, str]:
    return found[:2]


def line_of(model: type[Model]) -> list[type[Model]]:
    """The model and those of its parents that share its key, the nearest first."""
    line, key = [model], model._meta.pk
    while isinstance(key, OneToOneField) and key.remote_field.parent_link:
        line.append(concrete_of(key.related_model))
        key = line[-1]._meta.pk
    return line


def _label(model: type[Model]) -> str:
    return model._meta.label_lower


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
