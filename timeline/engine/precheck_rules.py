"""Rules of the precheck: guards that the database checks, anchors that have changed, times outside of a window."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from typing import Any
from uuid import UUID

from django.db.models import Model, Q
from django.utils import timezone, translation

from timeline import reasons
from timeline.engine.attempts import Attempt, guard_reason
from timeline.exceptions import DateOutOfRange, NaiveDatetime, Rest, UnreadableEntity
from timeline.features.machines.visits import is_of_unknown_state, left
from timeline.lifecycle import Reason
from timeline.models import EntityRef, ScheduledTask, model_of
from timeline.models.entities import keys_of
from timeline.models.facts import anchors_of, is_of_visit, zone_of
from timeline.models.statements import Among
from timeline.planning.rows import is_due_by_decision
from timeline.store.database_errors import catching, is_passing
from timeline.store.entity_locks import surely_gone
from timeline.timing import When

logger = logging.getLogger("timeline")


def guarded(attempts: Iterable[Attempt], *, using: str) -> dict[UUID, Reason | Exception]:
    """By task id, why it must not run, or its guard's error; not of half-done tasks. Usually one statement for each guard."""
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


def superseded(attempt: Attempt, now: datetime) -> Reason | Rest | None:
    """Refuse a row whose anchor now gives another time; if a changed schedule gives a later one, it is not yet time."""
    task, when = attempt.task, attempt.declared.when
    if task.run_id is None:
        return None
    run = task.run
    if when is not None and when.during and (run is None or not is_of_visit(task, run, when)):
        return _not_of_visit(attempt, when)
    if when is None or (when.anchor_in(run.state) if run else when.anchor) != task.anchor:
        return reasons.PLANNED_OTHERWISE()
    try:
        value = _anchor_value(attempt, when.field_name)
        if value is None or value != task.anchor_value:
            return reasons.ANCHOR_CHANGED(anchor=when.field_name or when.anchor)
        is_other = task.definition_hash != attempt.declared.fingerprint
        if is_other and not is_due_by_decision(task.nominal_at, task.scheduled_at, task.planned_at):
            at = when.resolve(value, zone_of(attempt.definition, attempt.entity))
            # The nominal time is unchanged: if it is due before that, its window or a person has moved it.
            return reasons.NOT_YET() if at > now and at != task.nominal_at else None
    except NaiveDatetime as error:
        return reasons.WITHOUT_ZONE(anchor=error.field)
    except DateOutOfRange as error:
        with translation.override("en"):
            return reasons.OUT_OF_RANGE(anchor=error.field, value=error.value)
    return None


def _not_of_visit(attempt: Attempt, when: When) -> Reason | Rest:
    """Its run has left its states. If its state is one that only other code has, it rests: a deploy must call nothing off."""
    run, machine = attempt.task.run, attempt.definition.machine
    if run is not None and is_of_unknown_state(attempt.task.occurrence, str(run.moves), run.state, machine):
        return Rest(reasons.STATE_UNKNOWN(state=run.state))
    return left(attempt.task.anchor, when)


def _anchor_value(attempt: Attempt, field_name: str) -> datetime | None:
    if not field_name:
        return attempt.task.anchor_value
    return anchors_of(attempt.definition, attempt.entity)[field_name]


def not_seen(tasks: Collection[ScheduledTask], *, using: str) -> dict[UUID, Rest]:
    """Those of some tasks without an entity that cannot be proved to have lost it, each with why it rests."""
    gone = surely_gone({task.entity_ref for task in tasks}, using=using)
    return {task.id: Rest(reasons.NOT_SEEN()) for task in tasks if task.entity_ref not in gone}


def is_outside(attempt: Attempt) -> Reason | None:
    """Why a task is cancelled whose time is outside its window, if the window says "cancel" and nobody chose this time."""
    task, hours = attempt.task, attempt.declared.options.window
    if hours is None or hours.outside != "cancel" or task.run_id is None or task.scheduled_at != task.nominal_at:
        return None
    return None if hours.is_open(task.nominal_at, _zone_of(attempt)) else reasons.OUTSIDE(hours=hours.said)


def next_opening(attempt: Attempt, at: datetime) -> datetime:
    """When a task is tried again that would otherwise be tried at the given time."""
    hours = attempt.declared.options.window
    if hours is None or attempt.task.run_id is None:
        return at
    caught: list[Exception] = []
    with catching(caught):
        return hours.next_open(at, _zone_of(attempt))
    logger.error("%s is tried again without its window, which cannot be read.", attempt.task, exc_info=caught[0])
    return at


def _zone_of(attempt: Attempt) -> tzinfo:
    with suppress(UnreadableEntity):
        return zone_of(attempt.definition, attempt.entity)
    return timezone.get_default_timezone()
