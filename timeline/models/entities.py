"""Entities: instances of any model, known by its label and their key as text; how they are named, loaded, and related."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import DatabaseError, DataError, InterfaceError, connections, models, router
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from timeline.dialects import Among, sqlstate_of, target_of
from timeline.exceptions import UnreadableEntity, WrongEntity
from timeline.registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LABEL = 100
MAX_ID = 100
SMALL = 2**15  # Numbers below this fit into a column of integers of any size.


class EntityRef(NamedTuple):
    """The name of an entity: label of its concrete model (``accounts.user``) and ``str(pk)``. Both empty: no entity."""

    label: str
    id: str

    def __str__(self) -> str:
        return f"{self.label} {self.id}" if self.label else gettext("the system")


NO_ENTITY = EntityRef("", "")


@lru_cache(maxsize=256)
def label_of(model: type[models.Model]) -> str:
    """Label of a model. It is always the same string object; Django makes a new one each time."""
    return model._meta.label_lower


def family_of(model: type[models.Model]) -> list[type[models.Model]]:
    """The model and its parents by multi-table inheritance, the nearest first. A proxy counts as its concrete model."""
    return list(_family(model).values())


@lru_cache(maxsize=256)
def _family(model: type[models.Model]) -> dict[str, type[models.Model]]:
    return {label_of(known): known for known in (concrete_of(model), *concrete_of(model)._meta.get_parent_list())}


def ref_of(entity: models.Model | EntityRef | None, label: str = "") -> EntityRef:
    """
    The name of an entity: by the nearest model among its own and its parents that a timeline is about; by its own if none is.

    Args:
        entity: A saved instance; None: no entity.
        label: Name it by this model, if that belongs to its family: a parent, or a model that shares its key. For a child, it
            is not checked whether the entity is one.

    Raises:
        WrongEntity: if it has no primary key yet, a key of a wrong type or of several columns, or one too long for our rows.
    """
    if entity is None:
        return NO_ENTITY
    if isinstance(entity, EntityRef):
        named = model_of(entity.label)
        return entity._replace(label=label_of(concrete_of(named))) if named and named._meta.proxy else entity
    if not isinstance(entity, models.Model):
        problem = _("%(value)s is no model instance.")
        raise WrongEntity(problem, _("Give an instance of a model, or None."), value=repr(entity))
    return ref_as(entity, named_by(entity.__class__, label))


def named_by(model: type[models.Model], label: str = "") -> type[models.Model]:
    """The model of the family by which instances of a model are named; see ``ref_of``."""
    family = _family(model)
    if label in family:
        return family[label]
    if label and (below := next((kin for known in family for kin in relatives(known) if label_of(kin) == label), None)):
        return below
    return family[next(filter(registry.knows, family), next(iter(family)))]


def ref_as(entity: models.Model, model: type[models.Model]) -> EntityRef:
    """The name of an entity by one model of its family; ``WrongEntity`` as in ``ref_of``."""
    if has_several_columns(model):
        problem, remedy = _("the key of %(label)s has several columns."), _("Give what has a key of one column.")
        raise WrongEntity(problem, remedy, label=label_of(model))
    value = entity.pk if entity.__class__ is model else key_as(entity, model)
    if value is None:
        raise WrongEntity(_("this %(model)s has no primary key yet."), _("Save it first."), model=model._meta.label)
    return ref_with(model, value)


def refs_as(entity: models.Model, several: Iterable[type[models.Model]]) -> list[EntityRef]:
    """The names of an entity by models of its family. Left out are those whose keys are too long for our rows."""
    refs = []
    for model in several:
        with suppress(WrongEntity):
            refs.append(ref_as(entity, model))
    return refs


def ref_with(model: type[models.Model], value: object) -> EntityRef:
    """The name of the entity of a model that has this key; ``WrongEntity`` if no row could have it."""
    label = label_of(model)
    try:
        key = str(model._meta.pk.to_python(value))  # The text as it is when read, even if other text was given.
    except ValidationError:
        problem, remedy = _("%(value)s is no key of %(label)s."), _("Give one that its field takes.")
        raise WrongEntity(problem, remedy, value=f"{value!r:.40}", label=label) from None
    if not 0 < len(key) <= MAX_ID or len(label) > MAX_LABEL:
        problem = _("the key of %(label)s %(key)s is empty or over %(longest)s characters.")
        raise WrongEntity(problem, _("Shorten it."), label=label, key=f"{key:.20}", longest=MAX_ID)
    return EntityRef(label, key)


def has_several_columns(model: type[models.Model]) -> bool:
    """Whether the model has a composite primary key. Rows name an entity by one value, so that they cannot name this one."""
    return isinstance(model._meta.pk, models.CompositePrimaryKey)


def key_as(entity: models.Model, model: type[models.Model]) -> Any:
    """The key of an entity as a model of its family (of a child, the nearest that shares it); None: not saved yet."""
    value, own = entity.pk, concrete_of(entity.__class__)
    line = family_of(own)
    if model not in line:
        model = next((known for known in line if model in relatives(label_of(known))), own)
    while own is not model and (link := own._meta.get_ancestor_link(model)) is not None:
        if not link.primary_key:  # Otherwise parent and child share the key.
            value = getattr(entity, link.attname)
        own = concrete_of(link.related_model)
    return value


def key_given(entity: models.Model, model: type[models.Model]) -> Any:
    """The key of the parent row that saving a child writes; None: a new one. To Django, ``Customer(id=7)`` is account 7."""
    key = key_as(entity, model)
    for kin in line_of(model):
        field = kin._meta.pk
        if key is None and field.default is field.db_default is models.NOT_PROVIDED:  # A default is used by Django.
            key = getattr(entity, field.attname, None)
    return key


def children_following(entity: models.Model, fields: Iterable[str] | None, *, using: str) -> list[EntityRef]:
    """
    Names of the children of a saved row whose timelines follow a field (None: any) that they inherit from it.

    A child that shares its key is named whether it exists or not. Others are found by one query for each model.
    """
    parent = concrete_of(entity.__class__)
    saved = {field.name for field in parent._meta.concrete_fields}
    found = []
    for label in sorted(registry.labels_following(saved if fields is None else saved & set(fields))):
        child = model_of(label)
        if child is None or parent not in family_of(child)[1:]:
            continue
        if shares_key(child, parent):
            found += refs_as(entity, [child])
        else:
            rows = child._base_manager.using(using).filter(**{path_to(child, parent): entity.pk})
            found += [EntityRef(label, str(key)) for key in rows.values_list("pk", flat=True)]
    return found


def shares_key(child: type[models.Model], parent: type[models.Model]) -> bool:
    """Whether a child has the key of its parent: all links between them are primary keys."""
    own = concrete_of(child)
    while own is not parent and (link := own._meta.get_ancestor_link(parent)) is not None:
        if not link.primary_key:
            return False
        own = concrete_of(link.related_model)
    return True


def path_to(child: type[models.Model], parent: type[models.Model]) -> str:
    """The lookup from a child to the row of a parent; empty if both are the same model."""
    names, own = [], concrete_of(child)
    while own is not parent and (link := own._meta.get_ancestor_link(parent)) is not None:
        names.append(link.name)
        own = concrete_of(link.related_model)
    return "__".join(names)


def model_of(label: str) -> type[models.Model] | None:
    """The model of a label; None: it is not installed (any more)."""
    try:
        return apps.get_model(label)
    except (LookupError, ValueError):
        return None


class Entities(dict[EntityRef, models.Model]):
    """Entities that exist. ``unreadable``: those with values that their model cannot read, each with the error; no items."""

    def __init__(self, items: Mapping[EntityRef, models.Model] | None = None) -> None:
        super().__init__(items or {})
        self.unreadable: dict[EntityRef, UnreadableEntity] = {}


def load_entities(refs: Iterable[EntityRef], *, using: str) -> Entities:
    """Read entities: with one query for each model; if some rows of a model cannot be read, with one for each entity."""
    return by_model(refs, lambda model, keys: model._base_manager.using(using).filter(Among(keys)), using=using)


def keys_of(model: type[models.Model], refs: Iterable[EntityRef]) -> list[Any]:
    """Ids as the type of the model's key, so that its index can be used. Ids that cannot be keys are left out."""
    keys = []
    for ref in refs:
        with suppress(ValidationError):
            key = model._meta.pk.to_python(ref.id)
            if not isinstance(key, int) or abs(key) < SMALL or _has_room(model, key):
                keys.append(key)
    return keys


def _has_room(model: type[models.Model], key: int) -> bool:
    """Whether the column of the key can hold a number. Databases refuse a statement with a number that is too large."""
    field = target_of(model._meta.pk)
    if not isinstance(field, models.IntegerField):
        return True
    operations = connections[router.db_for_read(model)].ops
    least, most = operations.integer_field_range(field.get_internal_type())
    return (least is None or key >= least) and (most is None or key <= most)


def by_model(
    refs: Iterable[EntityRef],
    query: Callable[[type[models.Model], list[Any]], Iterable[models.Model]],
    *,
    among: Callable[[type[models.Model], list[Any]], list[Any]] = lambda _model, keys: keys,
    using: str,
) -> Entities:
    """Read by one ``query`` of model and keys for each model; if its rows cannot be read together, ``among`` them singly."""
    found = Entities()
    for model, keys in models_of(refs):
        try:
            found.update(_named(model, query(model, keys)))
        except Exception as error:
            if not is_of_the_row(error):
                raise
            _read_each(found, model, among(model, keys), using)
    return found


def _named(model: type[models.Model], rows: Iterable[models.Model]) -> dict[EntityRef, models.Model]:
    label = label_of(model)
    return {EntityRef(label, str(entity.pk)): entity for entity in rows}


def _read_each(found: Entities, model: type[models.Model], keys: list[Any], using: str) -> None:
    for key in keys:
        try:
            found.update(_named(model, model._base_manager.using(using).filter(pk=key)))
        except Exception as error:
            if not is_of_the_row(error):
                raise
            ref = EntityRef(label_of(model), str(key))
            found.unreadable[ref] = UnreadableEntity.because(ref, error)


def is_of_the_row(error: Exception) -> bool:
    """Whether Python could not read a row. If not, the database has raised, which concerns more than a row."""
    if isinstance(error, DataError):  # The driver's own has no SQLSTATE: for an infinite date, say.
        return not sqlstate_of(error)
    return not isinstance(error, DatabaseError | InterfaceError)


def models_of(refs: Iterable[EntityRef]) -> Iterator[tuple[type[models.Model], list[Any]]]:
    """The installed models of these entities in the lock order, each with the keys of its entities."""
    grouped = by_label(refs)
    for label in sorted(grouped, key=place_of):
        if label and (model := model_of(label)) is not None and not has_several_columns(model):
            yield model, keys_of(model, sorted(set(grouped[label])))


def by_label(refs: Iterable[EntityRef]) -> dict[str, list[EntityRef]]:
    """Group entities by their labels."""
    grouped: dict[str, list[EntityRef]] = defaultdict(list)
    for ref in refs:
        grouped[ref.label].append(ref)
    return grouped


def naming(entity: models.Model | EntityRef | None) -> Q:
    """Condition for rows that name this entity; None: rows that name none."""
    ref = ref_of(entity)
    return Q(entity_label=ref.label, entity_id=ref.id)


# Families: models that are about the same entity, by multi-table inheritance and as proxies.
class Bridge(NamedTuple):
    """A parent link that is not the primary key of the child. ``root``, ``leads_to``: labels of the roots of both trees."""

    child: type[models.Model]
    link: models.OneToOneField[Any, Any]
    root: str
    leads_to: str


class Families(NamedTuple):
    """
    ``trees``: label (of a proxy, too) → the models that share its key, parents first. ``labels``: label → their labels.

    ``bridges``: label of a root → bridges from its tree to others, and from others to it.
    """

    trees: Mapping[str, tuple[type[models.Model], ...]]
    labels: Mapping[str, tuple[str, ...]]
    bridges: Mapping[str, list[Bridge]]


class _KnownFamilies:
    """The families that were found, and for which models: Django gives the same list until other models are installed."""

    models: Iterable[type[models.Model]] = ()
    families = Families({}, {}, {})


_known: Final = _KnownFamilies()


def families() -> Families:
    """The families of the installed models."""
    installed = apps.get_models()
    if _known.models is not installed:
        _known.families = _found(installed)
        _known.models = installed
    return _known.families


def relatives(label: str) -> tuple[type[models.Model], ...]:
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


def concrete_of(model: type[models.Model]) -> type[models.Model]:
    """The model itself, or the concrete model of a proxy."""
    return model._meta.concrete_model or model


def _found(installed: Iterable[type[models.Model]]) -> Families:
    members: dict[str, list[tuple[int, str, type[models.Model]]]] = defaultdict(list)
    concrete = [model for model in installed if not model._meta.proxy]
    for model in concrete:
        line = line_of(model)
        members[label_of(line[-1])].append((len(line), label_of(model), model))
    by_root = {
        root: tuple(model for _depth, _label, model in sorted(found, key=_place)) for root, found in members.items()
    }
    trees = {label_of(model): by_root[label_of(line_of(concrete_of(model))[-1])] for model in installed}
    bridges: dict[str, list[Bridge]] = defaultdict(list)
    for model in concrete:
        for parent, link in model._meta.parents.items():
            if not isinstance(link, models.OneToOneField) or link.model is not model or link.primary_key:
                continue
            bridge = Bridge(model, link, label_of(line_of(model)[-1]), label_of(line_of(concrete_of(parent))[-1]))
            if bridge.root != bridge.leads_to:  # Otherwise it is another way to the same root, as in a diamond.
                bridges[bridge.root].append(bridge)
                bridges[bridge.leads_to].append(bridge)
    return Families(trees, {label: tuple(map(label_of, tree)) for label, tree in trees.items()}, bridges)


def _place(found: tuple[int, str, type[models.Model]]) -> tuple[int, str]:
    return found[:2]


def line_of(model: type[models.Model]) -> list[type[models.Model]]:
    """The model and those of its parents that share its key, the nearest first."""
    line, key = [model], model._meta.pk
    while isinstance(key, models.OneToOneField) and key.remote_field.parent_link:
        line.append(concrete_of(key.related_model))
        key = line[-1]._meta.pk
    return line
