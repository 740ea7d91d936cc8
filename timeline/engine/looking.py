"""The last look: is what a task is about still true, at the moment of running?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Model, Q
from django.utils import translation

from timeline import reasons
from timeline.engine.attempting import Attempt
from timeline.engine.overlapping import overlapping
from timeline.exceptions import DateOutOfRange, NaiveDatetime
from timeline.lifecycle import Reason, ReasonCode
from timeline.models import EntityRef, ScheduledTask, TimelineRun, model_of
from timeline.models.among import Among
from timeline.models.entities import Entities, keys_of, load_entities
from timeline.models.facts import anchors_of, zone_of
from timeline.operations.exits import exits_since
from timeline.store.errors import catching, is_passing

# The task was pruned with its run while its worker was not heard of. Nobody reads this: what is not there takes no outcome.
RUN_GONE: Final = reasons.RUN_NOT_THERE()


def look(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Reason | Exception]:
    """
    Look once more at what the attempts rest on, and give each its entity.

    Run open? No exit since it started? Entity there? Anchor and schedule still the same? Not too late? Guards that are a
    ``Q``? Is an earlier run of a timeline that the clock starts still under way? A fixed number of statements: one for the
    runs, one for the exits, one for the entities of each model, one for each such guard, one for timelines of the clock.

    Returns:
        Id of a task → why it must not run, or what was raised when that was asked, which is a failed attempt of that task
        alone. A task that is not in it may: its guards that are functions are asked next.
    """
    gone = _read_runs([attempt.task for attempt in attempts], using)
    attempts = [attempt for attempt in attempts if attempt.task.id not in gone]
    entities = load_entities((attempt.task.entity_ref for attempt in attempts), using=using)
    asked = [(attempt.task.run, attempt.definition) for attempt in attempts]
    exits = exits_since([(run, definition) for run, definition in asked if run is not None], using=using)
    refused: dict[UUID, Reason | Exception] = dict.fromkeys(gone, RUN_GONE)
    for attempt in attempts:
        reason = _refusal(attempt, entities, exits, now)
        if reason is not None:
            refused[attempt.task.id] = reason
    refused |= overlapping([attempt for attempt in attempts if attempt.task.id not in refused], using=using)
    return _guarded([attempt for attempt in attempts if attempt.task.id not in refused], using) | refused


def _refusal(
    attempt: Attempt, entities: Entities, exits: Mapping[UUID, str], now: datetime
) -> Reason | Exception | None:
    """Why it must not run, as far as that can be told by what was read; or why that cannot be told."""
    ref, caught = attempt.task.entity_ref, list[Exception]()
    attempt.entity = entities.get(ref)
    if (ended := _run_ended(attempt, exits)) is not None:
        return ended
    if ref in entities.unreadable:
        return entities.unreadable[ref]
    with catching(caught):
        return _gone(attempt) or _superseded(attempt, now) or _expired(attempt, now)
    return caught[0]


def _read_runs(tasks: Iterable[ScheduledTask], using: str) -> set[UUID]:
    """Give each task its run as it is now. Returns the ids of those whose run is not there any more."""
    tasks = [task for task in tasks if task.run_id is not None]
    if not tasks:
        return set()
    rows = TimelineRun.objects.using(using).filter(Among({task.run_id for task in tasks}))
    runs = {run.pk: run for run in rows}
    there = [task for task in tasks if task.run_id in runs]
    for task in there:
        task.run = runs[task.run_id]  # type: ignore[index]
    return {task.id for task in tasks} - {task.id for task in there}


def _run_ended(attempt: Attempt, exits: Mapping[UUID, str]) -> Reason | None:
    run = attempt.task.run
    if run is None:
        return None
    if not run.is_open:
        return Reason(ReasonCode.EXIT, run.end_reason)
    return Reason(ReasonCode.EXIT, exits[run.pk]) if run.pk in exits else None


def _gone(attempt: Attempt) -> Reason | None:
    if attempt.definition.label and attempt.entity is None:
        return reasons.NOT_THERE()
    return None


def _superseded(attempt: Attempt, now: datetime) -> Reason | None:
    """The row must be of the time its anchor gives now; if the schedule was changed to a later one, it is not yet time."""
    task, when = attempt.task, attempt.declared.when
    if task.run is None:
        return None
    if when is None or when.anchor != task.anchor:
        return reasons.PLANNED_OTHERWISE()
    try:
        value = _anchor_value(attempt, when.field_name)
        if value is None or value != task.anchor_value:
            return reasons.ANCHOR_CHANGED(anchor=when.field_name or when.anchor)
        if task.definition_hash != attempt.declared.fingerprint:
            at = when.resolve(value, zone_of(attempt.definition, attempt.entity))
            return reasons.NOT_YET() if at > now else None
    except NaiveDatetime as error:
        return reasons.WITHOUT_ZONE(anchor=error.field)
    except DateOutOfRange as error:
        with translation.override("en"):
            return reasons.OUT_OF_RANGE(anchor=error.field, value=error.value)
    return None


def _anchor_value(attempt: Attempt, field_name: str) -> datetime | None:
    if not field_name:
        return attempt.task.anchor_value
    return anchors_of(attempt.definition, attempt.entity)[field_name]


def _expired(attempt: Attempt, now: datetime) -> Reason | None:
    expires_at = attempt.task.expires_at
    if expires_at is not None and not attempt.has_records and expires_at <= now:
        return reasons.TOO_LATE(at=expires_at)
    return None


def _guarded(attempts: Iterable[Attempt], using: str) -> dict[UUID, Reason | Exception]:
    """Ask the guards that are conditions on the entity's model: one statement for each guard, unless that is refused."""
    asked: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in (attempt for attempt in attempts if not attempt.has_records):
        for option in ("only_if", "unless"):
            if isinstance(getattr(attempt.declared.options, option), Q):
                asked[attempt.task.task_key, option].append(attempt)
    refused: dict[UUID, Reason | Exception] = {}
    for (_task_key, option), group in asked.items():
        refused |= _asked(group, option, using)
    return refused


def _asked(attempts: Sequence[Attempt], option: str, using: str) -> dict[UUID, Reason | Exception]:
    """Ask one guard of tasks of one kind: of all together, and each by itself if that is refused."""
    caught: list[Exception] = []
    with catching(caught):
        return dict(_no_of(attempts, option, using))
    if is_passing(caught[0]):
        raise caught[0]
    if len(attempts) == 1:
        return {attempts[0].task.id: caught[0]}
    return {task_id: no for attempt in attempts for task_id, no in _asked([attempt], option, using).items()}


def _no_of(attempts: Sequence[Attempt], option: str, using: str) -> dict[UUID, Reason]:
    """Whom the guard refuses."""
    guard = getattr(attempts[0].declared.options, option)
    holds = _matching(attempts, guard, using)
    no = [attempt for attempt in attempts if (attempt.task.entity_ref in holds) is (option == "unless")]
    return {attempt.task.id: Reason(ReasonCode.GUARD, f"{option} {guard}") for attempt in no}


def _matching(attempts: Sequence[Attempt], guard: Q, using: str) -> set[EntityRef]:
    label = attempts[0].definition.label
    model: type[Model] | None = model_of(label)
    if model is None:
        return set()
    keys: list[Any] = keys_of(model, (attempt.task.entity_ref for attempt in attempts))
    matching = model._base_manager.using(using).filter(Among(keys)).filter(guard)
    return {EntityRef(label, str(key)) for key in matching.values_list("pk", flat=True)}
