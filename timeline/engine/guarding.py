"""Guards that are conditions on the entity's model: the database checks them for many tasks together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Model, Q

from timeline.engine.attempting import Attempt, guard_reason
from timeline.lifecycle import Reason
from timeline.models import EntityRef, model_of
from timeline.models.among import Among
from timeline.models.entities import keys_of
from timeline.store.errors import catching, is_passing


def guarded(attempts: Iterable[Attempt], *, using: str) -> dict[UUID, Reason | Exception]:
    """
    Check them: one statement for each guard, unless the database refuses it. Half-done tasks are not checked any more.

    Args:
        attempts: Attempts that could otherwise run.
        using: Database alias.

    Returns:
        Id of a task → why it must not run, or the error that its guard caused.
    """
    asked: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in (attempt for attempt in attempts if not attempt.has_records):
        for option, _guard in attempt.declared.query_guards:
            asked[attempt.task.task_key, option].append(attempt)
    refused: dict[UUID, Reason | Exception] = {}
    for (_task_key, option), group in asked.items():
        refused = _asked(group, option, using) | refused  # What ends a series is checked first, and stands.
    return refused


def _asked(attempts: Sequence[Attempt], option: str, using: str) -> dict[UUID, Reason | Exception]:
    """Check one guard for tasks of one kind: for all together, and for each alone if the database refuses that."""
    caught: list[Exception] = []
    with catching(caught):
        return dict(_no_of(attempts, option, using))
    if is_passing(caught[0]):
        raise caught[0]
    if len(attempts) == 1:
        return {attempts[0].task.id: caught[0]}
    return {task_id: no for attempt in attempts for task_id, no in _asked([attempt], option, using).items()}


def _no_of(attempts: Sequence[Attempt], option: str, using: str) -> dict[UUID, Reason]:
    """The tasks that the guard refuses."""
    guard = attempts[0].declared.guards[option]
    holds = _matching(attempts, guard, using)
    no = [attempt for attempt in attempts if (attempt.task.entity_ref in holds) is (option != "only_if")]
    return {attempt.task.id: guard_reason(option, guard) for attempt in no}


def _matching(attempts: Sequence[Attempt], guard: Q, using: str) -> set[EntityRef]:
    label = attempts[0].definition.label
    model: type[Model] | None = model_of(label)
    if model is None:
        return set()
    keys: list[Any] = keys_of(model, (attempt.task.entity_ref for attempt in attempts))
    matching = model._base_manager.using(using).filter(Among(keys)).filter(guard)
    return {EntityRef(label, str(key)) for key in matching.values_list("pk", flat=True)}
