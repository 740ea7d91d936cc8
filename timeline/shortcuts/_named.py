"""The entities and tasks that a call names, and their database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from django.db import router
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.models.entities import named_by, ref_as
from timeline.operations.sets import Portion, check_batch_size, check_whole, in_batches, pages
from timeline.payloads import unfit

Tasks = ScheduledTask | UUID | Sequence[ScheduledTask | UUID] | QuerySet[ScheduledTask]
Entities = Iterable[Model] | QuerySet[Any]


def alias_of(entity: Model | None) -> str:
    if not isinstance(entity, Model):
        ref_of(entity)
        return router.db_for_write(ScheduledTask)
    return router.db_for_write(entity.__class__, instance=entity)


def named(tasks: Tasks, using: str | None, field: str = "tasks") -> tuple[list[UUID], str]:
    """
    The ids of tasks, and their database.

    Raises:
        InvalidInput: naming the field, if something else is given.
    """
    if isinstance(tasks, QuerySet):
        if not issubclass(tasks.model, ScheduledTask):
            raise unfit(field, tasks.model, _("Give a task, its id as a UUID, or several of them."))
        named_by_caller: str | None = tasks._db  # type: ignore[attr-defined]  # As in ``batches_of``.
        using = using or named_by_caller or router.db_for_write(ScheduledTask)
        return list(tasks.using(using).values_list("pk", flat=True)), using
    several = [tasks] if isinstance(tasks, ScheduledTask | UUID) else list(_one_by_one(tasks, field))
    ids = [task.pk if isinstance(task, ScheduledTask) else task for task in several]
    rows = [task for task in several if isinstance(task, ScheduledTask)]
    return ids, using or router.db_for_write(ScheduledTask, **({"instance": rows[0]} if rows else {}))


def _one_by_one(tasks: Iterable[Any], field: str) -> Iterator[Any]:
    for task in tasks if isinstance(tasks, Iterable) and not isinstance(tasks, str | bytes) else [tasks]:
        if not isinstance(task, ScheduledTask | UUID):
            raise unfit(field, task, _("Give a task, its id as a UUID, or several of them."))
        yield task


def named_one(task: ScheduledTask | UUID, using: str | None) -> tuple[UUID, str]:
    """
    The id of a task, and its database.

    Raises:
        InvalidInput: naming ``task``, if something else is given.
    """
    ids, using = named(task, using, "task")
    if len(ids) != 1:
        raise unfit("task", task, _("Give one task, or its id as a UUID."))
    return ids[0], using


def batches_of(
    entities: Entities, size: int, using: str | None, label: str = "", *, field: str = "entities"
) -> Iterator[Portion]:
    check_batch_size(size)
    if not isinstance(entities, Iterable) or isinstance(entities, str | bytes):
        raise unfit(field, entities, _("Give a queryset, or several instances of a model."))
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
