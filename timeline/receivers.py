"""Django's signals, translated: a saved row, a deleted row, a migrated database."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import connections
from django.db.models import Model

from timeline.clocks import story_now
from timeline.models import Identity, ref_of
from timeline.models.triggers import install_triggers
from timeline.operations.following import entity_created, entity_deleted, entity_saved
from timeline.operations.identifying import stamp
from timeline.registry import registry


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
    """An entity was saved. Rows of fixtures (``raw``) and of migrations mean nothing."""
    if raw or not _is_entity(sender):
        return
    if created:
        entity_created(entity=instance, now=story_now(using), using=using)
    else:
        entity_saved(entity=instance, fields=update_fields, now=story_now(using), using=using)


def on_delete(*, sender: type[Model], instance: Model, using: str, **_extra: Any) -> None:
    """An entity was deleted."""
    if _is_entity(sender):
        entity_deleted(ref=ref_of(instance), now=story_now(using), using=using)


def on_migrate(*, using: str, **_extra: Any) -> None:
    """A database was migrated: its triggers may be gone, and a new one is of no site yet."""
    install_triggers(using)
    if Identity._meta.db_table in connections[using].introspection.table_names():
        stamp(now=story_now(using), using=using)


def _is_entity(sender: type[Model]) -> bool:
    """Whether timelines are about this model; those that migrations make up are not it."""
    concrete = sender._meta.concrete_model or sender
    return sender.__module__ != "__fake__" and registry.knows(concrete._meta.label_lower)
