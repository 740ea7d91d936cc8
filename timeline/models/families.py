"""Families: models that are about the same entity, by multi-table inheritance and as proxies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from django.apps import apps
from django.db.models import Model, OneToOneField


class Bridge(NamedTuple):
    """
    A parent link that is not the primary key of the child: child and parent have different keys.

    Args:
        child: The model that has the link.
        link: The link to the parent.
        root: Label of the root of the child's tree.
        leads_to: Label of the root of the parent's tree.
    """

    child: type[Model]
    link: OneToOneField[Any, Any]
    root: str
    leads_to: str


class Families(NamedTuple):
    """
    The families of the installed models.

    Args:
        trees: Label (of a proxy, too) → models that share their key with this one: the root first, parents before children.
        labels: Label (of a proxy, too) → the labels of these models.
        bridges: Label of a root → bridges from its tree to others, and from others to it.
    """

    trees: Mapping[str, tuple[type[Model], ...]]
    labels: Mapping[str, tuple[str, ...]]
    bridges: Mapping[str, list[Bridge]]


class _Known:
    """The families that were found, and for which models: Django gives the same list until other models are installed."""

    models: Iterable[type[Model]] = ()
    families = Families({}, {}, {})


_known: Final = _Known()


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
