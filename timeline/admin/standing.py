"""What the guards of tasks that are ahead say now: whether they would run as things stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model, Q
from django.utils.translation import gettext as _

from timeline.exceptions import UnknownTask
from timeline.models import EntityRef, model_of
from timeline.models.entities import load_entities
from timeline.registry import registry
from timeline.store.errors import catching

if TYPE_CHECKING:
    from timeline.models import ScheduledTask


def standing_of(tasks: Iterable[ScheduledTask], *, using: str) -> dict[UUID, str]:
    """
    Ask the guards of tasks about one entity, each guard once: a query for a condition, a call for a function.

    Args:
        tasks: Those that are ahead.
        using: Database alias.

    Returns:
        Id of a task → what they say, in words; not in it: those without guards, and those that no code is known of.
    """
    guarded = [(task, guards) for task in tasks if (guards := _guards_of(task))]
    there = load_entities({task.entity_ref for task, _guards in guarded}, using=using) if guarded else {}

    said: dict[tuple[EntityRef, int], bool | None] = {}
    told = {}
    for task, guards in guarded:
        ref, answers = task.entity_ref, []
        for option, guard in guards:
            if (ref, id(guard)) not in said:
                entity = there.get(ref)
                said[ref, id(guard)] = None if entity is None else _holds(guard, ref, entity, using)
            answers.append((option, guard, said[ref, id(guard)]))
        told[task.pk] = _in_words(answers)
    return told


def _guards_of(task: ScheduledTask) -> Sequence[tuple[str, Any]]:
    with suppress(UnknownTask):
        declared = registry.task(task.task_key)[1]
        return [(option, guard) for option, guard in declared.guards.items() if guard is not None and option != "until"]
    return []


def _holds(guard: Any, ref: EntityRef, entity: Model, using: str) -> bool | None:
    """Whether a guard holds; None: it raised. Nothing that it writes stays."""
    caught: list[Exception] = []
    with catching(caught), transaction.atomic(using=using):
        try:
            if isinstance(guard, Q):
                model: Any = model_of(ref.label)
                return bool(model._base_manager.using(using).filter(pk=entity.pk).filter(guard).exists())
            return bool(guard(entity))
        finally:
            transaction.set_rollback(True, using=using)
    return None


def _in_words(answers: Sequence[tuple[str, Any, bool | None]]) -> str:
    for option, guard, holds in answers:
        named = {"guard": f"{option} {_name(guard)}"}
        if holds is None:
            return _("as things stand, nobody can say whether it runs: %(guard)s cannot be asked") % named
        if holds is not (option == "only_if"):
            return _("as things stand, it would be cancelled: %(guard)s") % named
    listed = ", ".join(f"{option} {_name(guard)}" for option, guard, _said in answers)
    return _("as things stand, it would run: %(guards)s") % {"guards": listed}


def _name(guard: object) -> str:
    return str(guard) if isinstance(guard, Q) else getattr(guard, "__name__", type(guard).__name__)
