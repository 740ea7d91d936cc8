"""The entities and tasks that a call names, and their database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import router
from django.db.models import Model, QuerySet

from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.models.entities import named_by, ref_as
from timeline.operations.sets import Portion, check_batch_size, check_whole, in_batches, pages

Tasks = ScheduledTask | UUID | Sequence[ScheduledTask | UUID] | QuerySet[ScheduledTask]
Entities = Iterable[Model] | QuerySet[Any]


def alias_of(entity: Model | None) -> str:
    if not isinstance(entity, Model):
        ref_of(entity)
        return router.db_for_write(ScheduledTask)
    return router.db_for_write(entity.__class__, instance=entity)


def named(tasks: Tasks, using: str | None) -> tuple[list[UUID], str]:
    if isinstance(tasks, QuerySet):
        named_by_caller: str | None = tasks._db  # type: ignore[attr-defined]  # As in ``batches_of``.
        using = using or named_by_caller or router.db_for_write(ScheduledTask)
        return list(tasks.using(using).values_list("pk", flat=True)), using
    several = [tasks] if isinstance(tasks, ScheduledTask | UUID) else list(tasks)
    ids = [task.pk if isinstance(task, ScheduledTask) else task for task in several]
    rows = [task for task in several if isinstance(task, ScheduledTask)]
    return ids, using or router.db_for_write(ScheduledTask, **({"instance": rows[0]} if rows else {}))


def batches_of(entities: Entities, size: int, using: str | None, label: str = "") -> Iterator[Portion]:
    check_batch_size(size)
    if isinstance(entities, QuerySet):
        check_whole(entities)
        named_by_caller: str | None = entities._db  # type: ignore[attr-defined]  # By ``using()``; ``db`` is for reading.
        alias = using or named_by_caller or router.db_for_write(entities.model)
        return pages(entities, named_by(entities.model, label), size, using=alias)
    return in_batches(_named_each(entities, using, label), size)


def _named_each(entities: Iterable[Any], using: str | None, label: str) -> Iterator[tuple[str, EntityRef]]:
    """Find the database and the name of each entity. The model by which entities are named is found once for each class."""
    models: dict[type[Any], type[Model]] = {}
    for entity in entities:
        model = models.get(entity.__class__)
        if model is None and isinstance(entity, Model):
            model = models[entity.__class__] = named_by(entity.__class__, label)
        yield using or alias_of(entity), ref_of(entity, label) if model is None else ref_as(entity, model)
