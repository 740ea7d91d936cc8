"""What the guards of tasks that are ahead say now: whether they would run as things stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connections, transaction
from django.db.models import Model, Q
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from timeline.dialects import dialect_of
from timeline.exceptions import UnknownTask
from timeline.models import EntityRef, model_of
from timeline.models.entities import load_entities
from timeline.models.facts import language_of, zone_of
from timeline.registry import registry
from timeline.store.errors import catching
from timeline.store.guiding import as_select

if TYPE_CHECKING:
    from timeline.models import ScheduledTask

BOUNDS: Final = {"lock_timeout": "100ms", "statement_timeout": "2s"}  # A page waits for no worker that has the entity.


def standing_of(tasks: Iterable[ScheduledTask], entities: Mapping[EntityRef, Model], *, using: str) -> dict[UUID, str]:
    """
    Ask the guards of tasks about one entity, each guard once: a query for a condition, a call for a function.

    Args:
        tasks: Those that are ahead.
        entities: What they are about, as far as it was read already; the rest is read here.
        using: Database alias.

    Returns:
        Id of a task → what they say, in words; not in it: those without guards, and those that no code is known of.
    """
    guarded = [(task, guards) for task in tasks if (guards := _guards_of(task))]
    refs = {task.entity_ref for task, _guards in guarded}
    there = {**load_entities(refs - entities.keys(), using=using), **entities}

    said: dict[tuple[EntityRef, int], bool | None] = {}
    told = {}
    for task, guards in guarded:
        ref, answers = task.entity_ref, []
        for option, guard in guards:
            if (ref, id(guard)) not in said:
                entity = there.get(ref)
                said[ref, id(guard)] = None if entity is None else _holds(guard, task, entity, using)
            answers.append((option, guard, said[ref, id(guard)]))
        told[task.pk] = _in_words(answers)
    return told


def _guards_of(task: ScheduledTask) -> Sequence[tuple[str, Any]]:
    with suppress(UnknownTask):
        declared = registry.task(task.task_key)[1]
        return [(option, guard) for option, guard in declared.guards.items() if guard is not None and option != "until"]
    return []


def _holds(guard: Any, task: ScheduledTask, entity: Model, using: str) -> bool | None:
    """Whether a guard holds; None: it raised. Nothing that it writes stays."""
    caught: list[Exception] = []
    with catching(caught), _as_at_a_worker(guard, task, entity), transaction.atomic(using=using):
        try:
            if isinstance(guard, Q):
                model: Any = model_of(task.entity_ref.label)
                return bool(model._base_manager.using(using).filter(pk=entity.pk).filter(guard).exists())
            if dialect_of(using).has_settings:
                with connections[using].cursor() as cursor:
                    cursor.execute(as_select(BOUNDS))  # Undone with the rest.
            return bool(guard(copy(entity)))  # What one does to it, another does not see.
        finally:
            transaction.set_rollback(True, using=using)
    return None


@contextmanager
def _as_at_a_worker(guard: Any, task: ScheduledTask, entity: Model) -> Iterator[None]:
    """Let zone and language be those that the guard has there, and not those of who looks at the page."""
    definition, _declared = registry.task(task.task_key)
    whose = None if isinstance(guard, Q) else entity
    language = language_of(definition, whose) or settings.LANGUAGE_CODE
    with timezone.override(zone_of(definition, whose)), translation.override(language):
        yield


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
