"""The last look: just before its handler is entered, may a task still run?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from timeline import reasons
from timeline.engine.attempting import Attempt
from timeline.engine.braking import braked
from timeline.engine.guarding import guarded
from timeline.engine.holding_back import held_back
from timeline.engine.opening import is_outside
from timeline.engine.overlapping import overlapping
from timeline.engine.superseding import superseded
from timeline.exceptions import Rest
from timeline.lifecycle import Reason, ReasonCode
from timeline.models import ScheduledTask, TimelineRun
from timeline.models.among import Among
from timeline.models.entities import Entities
from timeline.models.families import kinds_of
from timeline.operations.exits import exits_since
from timeline.store.errors import catching
from timeline.store.holds import IS_ANY_OPEN
from timeline.store.queueing import Behind
from timeline.store.returning import read_entities, read_models

# The task was pruned with its run while its worker gave no signs. Nobody reads this reason: there is no row to write it to.
RUN_GONE: Final = reasons.RUN_NOT_THERE()

_ANY_HOLD: Final = "timeline_any_hold"  # An attribute that the query adds to runs for a moment.


def look(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Reason | Behind | Rest | Exception]:
    """
    Check again everything that an attempt depends on, and give each attempt its entity.

    A check that no definition needs is skipped, and its module is not entered.

    Run open? No exit since it started? Entity there? Anchor and schedule still the same? Not too late? Nothing on hold?
    Guards that are a ``Q``? Has an earlier run of a timeline that the clock starts ended? Not too many of a destructive kind?
    A fixed number of statements: one for the runs and whether anything is on hold, one for the exits, one for the entities of
    each model, one for each such guard, one for timelines of the clock, a few for each destructive kind. For tasks without a
    run, one statement asks for holds.

    Returns:
        Id of a task → the reason why it must not run (now), the earlier run that it waits for, why it rests, or the error that
        a check raised, which is a failed attempt of that task alone. Other tasks may run; their guards that are functions are
        called next.
    """
    gone, is_any_open = _read_runs([attempt.task for attempt in attempts], using)
    refused: dict[UUID, Reason | Behind | Rest | Exception] = dict.fromkeys(gone, RUN_GONE)
    attempts = _without(refused, attempts) if refused else attempts
    entities = read_entities((attempt.task.entity_ref for attempt in attempts), using=using)
    asked = [(attempt.task.run, attempt.definition) for attempt in attempts if attempt.definition.exits]
    exits = exits_since([(run, known) for run, known in asked if run is not None], using=using) if asked else {}
    for attempt in attempts:
        reason = _refusal(attempt, entities, exits, now)
        if reason is not None:
            refused[attempt.task.id] = reason
    if is_any_open is not False:
        refused |= held_back(_without(refused, attempts), is_any_open, using=using)
    if any(attempt.definition.recurring for attempt in attempts):
        refused |= overlapping(_without(refused, attempts), now=now, using=using)
    if any(attempt.declared.query_guards for attempt in attempts):
        refused |= guarded(_without(refused, attempts), using=using)
    if any(attempt.declared.options.park_above is not None for attempt in attempts):
        refused |= braked(_without(refused, attempts), now=now, using=using)
    return refused


def _without(refused: Mapping[UUID, object], attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    return [attempt for attempt in attempts if attempt.task.id not in refused]


def _refusal(
    attempt: Attempt, entities: Entities, exits: Mapping[UUID, str], now: datetime
) -> Reason | Rest | Exception | None:
    """The reason why it must not run, by the data that has been read; or the error because of which nobody knows."""
    ref, caught = attempt.task.entity_ref, list[Exception]()
    attempt.entity = entities.get(ref)
    if (ended := _run_ended(attempt, exits)) is not None:
        return ended
    if entities.unreadable and ref in entities.unreadable:
        return entities.unreadable[ref]
    if (label := attempt.definition.label) and ref.label != label and label not in kinds_of(ref.label):
        return Rest(reasons.LABEL_UNKNOWN(label=ref.label, wanted=label))
    if label and attempt.entity is None:
        return reasons.NOT_THERE()
    with catching(caught):
        reason = superseded(attempt, now) or _expired(attempt, now)
        return is_outside(attempt) if reason is None and attempt.declared.options.window is not None else reason
    return caught[0]


def _read_runs(tasks: Iterable[ScheduledTask], using: str) -> tuple[set[UUID], bool | None]:
    """
    Give each task its run as it is now.

    Returns:
        The ids of tasks whose run does not exist any more; and whether anything is on hold (None: not read, as no run was).
    """
    tasks = [task for task in tasks if task.run_id is not None]
    if not tasks:
        return set(), None
    rows = TimelineRun.objects.using(using).filter(Among({task.run_id for task in tasks}))
    runs = {run.pk: run for run in read_models(rows.extra(select={_ANY_HOLD: IS_ANY_OPEN}))}  # noqa: S610 (ours)
    told = {run.__dict__.pop(_ANY_HOLD) for run in runs.values()}
    there = [task for task in tasks if task.run_id in runs]
    for task in there:
        task.run = runs[task.run_id]
    return {task.id for task in tasks} - {task.id for task in there}, any(told) if told else None


def _run_ended(attempt: Attempt, exits: Mapping[UUID, str]) -> Reason | None:
    run = attempt.task.run if attempt.task.run_id is not None else None
    if run is None:
        return None
    if not run.is_open:
        return Reason(ReasonCode.EXIT, run.end_reason)
    return Reason(ReasonCode.EXIT, exits[run.pk]) if run.pk in exits else None


def _expired(attempt: Attempt, now: datetime) -> Reason | None:
    expires_at = attempt.task.expires_at
    if expires_at is not None and not attempt.has_records and expires_at <= now:
        return reasons.TOO_LATE(at=expires_at)
    return None
