"""Django's signals, translated. Of timelines' models and families only: listening makes Django's deletes slow."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.db import connections
from django.db.models import Model
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.dialects import known_among
from timeline.hooks import hooks
from timeline.models import Edge, Identity, family_of, model_of, ref_as
from timeline.models.entities import children_following, key_given, refs_as
from timeline.models.state_field import note_saved, refuse_moves
from timeline.operations.follow import entity_created, entity_deleted, entity_saved, refuse_misfits
from timeline.registry import registry
from timeline.store.database_errors import drop_unless_usable, is_of_the_connection
from timeline.store.locks import lock_rows
from timeline.store.site import stamp
from timeline.store.triggers import install_triggers, missing_triggers

# Attribute of an instance between the two signals of its save: a list, as a receiver of the host's may save it again meanwhile.
_THERE = "_timeline_parents_there"


def on_register(*, label: str, **_extra: Any) -> None:
    """A timeline is known: hear what happens to rows of its entity's model and of the family of that."""
    if (model := model_of(label)) is not None:
        for kin in {kin for root in family_of(model) for kin in _descendants(root)}:
            _hear(kin, model)


def on_declare(*, sender: type[Model], **_extra: Any) -> None:
    """A model was declared, perhaps a child or a proxy of one that a timeline is about."""
    for label in {definition.label for definition in registry}:
        if (model := model_of(label)) is not None:
            _hear(sender, model)


def _descendants(model: type[Model]) -> Iterator[type[Model]]:
    yield model
    for child in model.__subclasses__():
        yield from _descendants(child)


def _hear(kin: type[Model], model: type[Model]) -> None:
    """
    Connect a class with what its rows mean for a model of a timeline. A proxy's signals are its own.

    Saving a child writes its parents' rows, and a parent what its children inherit. Deleting a child deletes its parents.
    """
    if kin._meta.abstract or kin.__module__ == "__fake__":  # As migrations make them up.
        return
    concrete = kin._meta.concrete_model or kin
    if issubclass(kin, model) or issubclass(model, concrete):
        pre_save.connect(before_save, sender=kin, dispatch_uid="timeline.before_save")
        post_save.connect(on_save, sender=kin, dispatch_uid="timeline.on_save")
        if any(concrete._meta.parents.values()):
            pre_delete.connect(before_delete, sender=kin, dispatch_uid="timeline.before_delete")
    if concrete is model:
        post_delete.connect(on_delete, sender=kin, dispatch_uid="timeline.on_delete")


def before_save(
    *,
    sender: type[Model],
    instance: Model,
    raw: bool,
    using: str,
    update_fields: Collection[str] | None,
    **_extra: Any,
) -> None:
    """
    Refuse a date that runs could not follow, or another state than the machine is in, while the row is as it was.

    And note which parents of a new child are there already: saving it inserts no row of theirs.
    """
    if raw:
        return
    refuse_misfits(instance, fields=update_fields, using=using)
    refuse_moves(instance, fields=update_fields)
    if parents := _known(family_of(sender)[1:]):
        there = _parents_there(instance, parents, using)
        vars(instance).setdefault(_THERE, []).append(there)


def _parents_there(instance: Model, parents: Iterable[type[Model]], using: str) -> set[type[Model]]:
    """
    Parents that a child names by keys and that are there. Asked only of a new child whose row may start runs.

    A child that was read has its parents: ``child.__dict__.update(parent.__dict__)`` makes it look so.
    """
    keys = {model: key for model in parents if (key := key_given(instance, model)) is not None}
    is_new = instance._state.adding
    return {
        model
        for model, key in keys.items()
        if not (is_new and _starts_runs(model._meta.label_lower))
        or model._base_manager.using(using).filter(pk=key).exists()
    }


def _noted(instance: Model) -> Collection[type[Model]]:
    """Take what ``before_save`` has noted of this save."""
    several: list[set[type[Model]]] = vars(instance).pop(_THERE, [])
    there: Collection[type[Model]] = several.pop() if several else ()
    if several:
        vars(instance)[_THERE] = several
    return there


def _starts_runs(label: str) -> bool:
    return get_settings().AUTOSTART and bool(registry.started_by_creation(label))


def on_save(
    *,
    sender: type[Model],
    instance: Model,
    created: bool,
    raw: bool,
    using: str,
    update_fields: Collection[str] | None,
    **_extra: Any,
) -> None:
    """
    An entity was saved. Rows of fixtures (``raw``) mean nothing.

    Django sends this for the model saved: not for its parents, whose rows are saved too, nor for children that inherit.
    """
    if raw:
        return
    there = _noted(instance)
    note_saved(instance, fields=update_fields)
    family = _known(family_of(sender))
    made = [model for model in family if created and model not in there]
    saved = refs_as(instance, [model for model in family if model not in made])
    saved += [] if created else children_following(instance, update_fields, using=using)
    for model in made:
        if _starts_runs(model._meta.label_lower):
            entity_created(entity=ref_as(instance, model), using=using)
    entity_saved(refs=saved, fields=update_fields, using=using)


def before_delete(*, sender: type[Model], instance: Model, using: str, **_extra: Any) -> None:
    """
    A child is about to be deleted: lock its rows and its parents' from the top down, as everybody else does.

    Django deletes from the bottom up: who has locked the parent would wait for the child, and both for each other.
    """
    if connections[using].features.has_select_for_update:
        lock_rows(refs_as(instance, family_of(sender)[:1]), using=using)


def on_delete(*, sender: type[Model], instance: Model, using: str, **_extra: Any) -> None:
    """An entity was deleted. Django sends this for its parents too, each with an instance of its own."""
    for ref in refs_as(instance, _known(family_of(sender)[:1])):
        entity_deleted(ref=ref, using=using)


def on_migrate(*, using: str, plan: object = None, **_extra: Any) -> None:
    """
    A database was migrated: triggers may be gone, edges missing, and a new database has no site yet.

    ``flush``, as after a ``TransactionTestCase``, has no plan, and only puts triggers if one is missing.
    """
    tables = connections[using].introspection.table_names()
    was_flushed = plan is None and Edge._meta.db_table in tables
    if not was_flushed or missing_triggers(using):
        install_triggers(using)
    for tell in hooks().migrated:
        tell(using, tables)
    if Identity._meta.db_table in tables:
        stamp(now=story_now(using), using=using)


def on_request_failed(**_extra: Any) -> None:
    """Drop a connection whose server takes no writes, as after a failover: Django would keep it, because it answers."""
    error = sys.exc_info()[1]
    if not isinstance(error, Exception) or not is_of_the_connection(error):
        return
    for using, _dialect in known_among(connections):
        drop_unless_usable(using)


def _known(models: Iterable[type[Model]]) -> list[type[Model]]:
    """Those that timelines are about."""
    return [model for model in models if registry.knows(model._meta.label_lower)]
