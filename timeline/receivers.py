"""
Django's signals, translated: a saved row, a deleted row, a migrated database.

Only models that timelines are about are heard, and their families: Django reads each row of a model before it deletes it, and
deletes them in small batches, if anybody wants to hear of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.db import connections
from django.db.models import Model
from django.db.models.signals import post_delete, post_save, pre_save

from timeline.clocks import story_now
from timeline.models import Identity, family_of, model_of, ref_as
from timeline.models.entities import children_following, key_as
from timeline.models.triggers import install_triggers
from timeline.operations.following import entity_created, entity_deleted, entity_saved
from timeline.operations.identifying import stamp
from timeline.operations.refusing import refuse_misfits
from timeline.registry import registry

_THERE = "_timeline_parents_there"  # Attribute of an instance between the two signals of its save.


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
    Connect a class with what its rows mean for a model that a timeline is about.

    Saving a child writes its parents' rows; saving a parent writes what its children inherit. Deleting a child deletes its
    parents by themselves. A proxy's signals are its own.
    """
    if kin._meta.abstract or kin.__module__ == "__fake__":  # As migrations make them up.
        return
    concrete = kin._meta.concrete_model or kin
    if issubclass(kin, model) or issubclass(model, concrete):
        pre_save.connect(before_save, sender=kin, dispatch_uid="timeline.before_save")
        post_save.connect(on_save, sender=kin, dispatch_uid="timeline.on_save")
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
    An entity is about to be saved: refuse a date that its runs could not follow, while the row is as it was.

    And note which parents a new child is given that are there already: saving it inserts no row of theirs.
    """
    if raw:
        return
    refuse_misfits(instance, fields=update_fields, using=using)
    if not instance._state.adding:
        return
    parents = [model for model in family_of(sender)[1:] if registry.started_by_creation(model._meta.label_lower)]
    keys = {model: key for model in parents if (key := key_as(instance, model)) is not None}
    there = {model for model, key in keys.items() if model._base_manager.using(using).filter(pk=key).exists()}
    vars(instance)[_THERE] = there


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

    Django sends this for the model saved; not for its parents of multi-table inheritance, whose rows are saved too, nor
    for its children, who inherit what was saved.
    """
    there = vars(instance).pop(_THERE, ())
    if raw:
        return
    family = {model: ref_as(instance, model) for model in _known(family_of(sender))}
    made = [ref for model, ref in family.items() if created and model not in there]
    saved = [ref for ref in family.values() if ref not in made]
    saved += [] if created else children_following(instance, update_fields, using=using)
    made = [ref for ref in made if registry.started_by_creation(ref.label)]
    saved = [ref for ref in saved if registry.following(ref.label)]
    if not made and not saved:
        return
    now = story_now(using)
    for ref in made:
        entity_created(entity=ref, now=now, using=using)
    for ref in saved:
        entity_saved(entity=ref, fields=update_fields, now=now, using=using)


def on_delete(*, sender: type[Model], instance: Model, using: str, **_extra: Any) -> None:
    """An entity was deleted. Django sends this for its parents too, each with an instance of its own."""
    for model in _known(family_of(sender)[:1]):
        entity_deleted(ref=ref_as(instance, model), now=story_now(using), using=using)


def on_migrate(*, using: str, **_extra: Any) -> None:
    """A database was migrated: its triggers may be gone, and a new one is of no site yet."""
    install_triggers(using)
    if Identity._meta.db_table in connections[using].introspection.table_names():
        stamp(now=story_now(using), using=using)


def _known(models: Iterable[type[Model]]) -> list[type[Model]]:
    """Those that timelines are about."""
    return [model for model in models if registry.knows(model._meta.label_lower)]
