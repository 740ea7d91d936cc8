"""The lock order: entities, then runs, then tasks, each in order of their keys. Every write starts here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Model
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, ScheduledTask, TimelineRun, lock_entities


@dataclass(frozen=True, slots=True)
class Locked:
    """
    What is held until the transaction ends.

    Args:
        entities: Those that are there.
        runs: In order of their ids.
    """

    entities: dict[EntityRef, Model]
    runs: list[TimelineRun]


def lock_entity(ref: EntityRef, *, using: str) -> dict[EntityRef, Model]:
    """
    Lock one entity, which must be there.

    Raises:
        WrongEntity: if it is not in this database.
    """
    found = lock_entities([ref], using=using)
    if ref.label and not found:
        problem = _("%(entity)s is not in the database %(using)r.")
        raise WrongEntity(problem, _("Save it there first, or name its database."), entity=ref, using=using)
    return found


def lock_runs(run_ids: Iterable[UUID], refs: Iterable[EntityRef], *, using: str, wait: bool = True) -> Locked:
    """
    Lock entities and then runs; runs that are not there are left out.

    Args:
        run_ids: In any order.
        refs: Their entities.
        using: Database alias.
        wait: For what somebody else has locked; False: leave that out, and the lock of system timelines.
    """
    entities = lock_entities(refs, using=using, wait=wait)
    wanted = sorted(set(run_ids))
    found = TimelineRun.objects.using(using).filter(pk__in=wanted).locked(skip_locked=not wait)
    return Locked(entities, list(found) if wanted else [])


def free_of(task_ids: Sequence[UUID], *, using: str) -> set[UUID]:
    """Lock those of the tasks that nobody else has locked; wait for none."""
    tasks = ScheduledTask.objects.using(using).filter(pk__in=task_ids)
    return set(tasks.locked(skip_locked=True).values_list("pk", flat=True))


def lock_tasks(task_ids: Sequence[UUID], *, using: str) -> list[ScheduledTask]:
    """
    Lock tasks, with their entities and runs before them.

    Returns:
        In the order given, each with its run.

    Raises:
        ScheduledTask.DoesNotExist: if one of them is not there.
    """
    tasks = ScheduledTask.objects.using(using).filter(pk__in=task_ids)
    seen = list(tasks.only("run_id", "entity_label", "entity_id"))
    lock_runs((task.run_id for task in seen if task.run_id), (task.entity_ref for task in seen), using=using)
    held = {task.pk: task for task in tasks.select_related("run").order_by("pk").locked()}
    if missing := [str(task_id) for task_id in task_ids if task_id not in held]:
        raise ScheduledTask.DoesNotExist(f"There is no task {', '.join(missing)} in the database {using!r}.")
    return [held[task_id] for task_id in dict.fromkeys(task_ids)]
