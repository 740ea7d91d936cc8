"""
Pass the last look, and its rules: guards that the database checks, anchors that have changed, windows. Tasks that must not run
end at once; for the others, the time of their group begins.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import Any, Final
from uuid import UUID

from django.db.models import Model, Q
from django.utils import translation

from timeline import reasons
from timeline.dialects import Among
from timeline.engine.attempts import Attempt, guard_reason, still_ours
from timeline.engine.execute import Outcome, Runtime, deadly, record_outcomes
from timeline.engine.failures import LOOKS_AGAIN_SOON, at_rest, failed, zone_for
from timeline.exceptions import DateOutOfRange, NaiveDatetime, Rest
from timeline.features.machines.visits import is_of_unknown_state, left
from timeline.hooks import asked_for, hooks
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import EntityRef, ScheduledTask, TimelineRun, model_of
from timeline.models.entities import Entities, keys_of, kinds_of
from timeline.models.facts import anchors_of, is_of_visit, zone_of
from timeline.operations.leave import exits_since
from timeline.planning.answers import is_due_by_decision
from timeline.store.database_errors import catching, is_passing
from timeline.store.missing_entities import surely_gone
from timeline.store.returned_rows import read_entities, read_models
from timeline.store.transition import Write
from timeline.timing import When

logger = logging.getLogger("timeline")
Refusal = Reason | Write | Rest | BaseException  # As ``timeline.hooks.Hooks.prechecks`` says.

# The task was pruned with its run while its worker gave no signs. Nobody reads this reason: there is no row to write it to.
RUN_GONE: Final = reasons.RUN_NOT_THERE()
GONE: Final = reasons.NOT_THERE()


def look(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Refusal]:
    """
    Check again everything that an attempt depends on, and give each attempt its entity.

    Run open, without an exit? Entity there? Anchor and schedule still the same? Not too late? What do features say, and guards
    that are a ``Q``? (Others are called later.) Gives, by task id, why it must not run (now), why it rests, or the error of a
    check, which is a failed attempt of that task alone. The statements are few and fixed.
    """
    of_runs: Sequence[Attempt] = [attempt for attempt in attempts if attempt.task.run_id is not None]
    gone, flags = _read_runs([attempt.task for attempt in of_runs], using) if of_runs else (set(), {})
    refused: dict[UUID, Refusal] = dict.fromkeys(gone, RUN_GONE)
    attempts, of_runs = _without(refused, attempts), _without(refused, of_runs)
    entities = read_entities((attempt.task.entity_ref for attempt in attempts), using=using)
    exits = exits_since([(one.task.run, one.definition) for one in of_runs if one.task.run is not None], using=using)
    refused |= _refusals(attempts, entities, exits, now=now, using=using)
    for name, check in hooks().flagged:
        if flags.get(name) is not False:
            refused |= check(_without(refused, attempts), is_sure=name in flags, using=using)
    for check in asked_for(hooks().prechecks, attempts):
        refused |= check(_without(refused, attempts), now=now, using=using)
    if any(attempt.declared.query_guards for attempt in attempts):
        refused |= guarded(_without(refused, attempts), using=using)
    for admit in asked_for(hooks().admissions, attempts):
        refused |= admit(_without(refused, attempts), now=now, using=using)
    return refused


def _refusals(
    attempts: Sequence[Attempt], entities: Entities, exits: Mapping[UUID, str], *, now: datetime, using: str
) -> dict[UUID, Refusal]:
    """What the data that has been read says against attempts, by task id."""
    found: dict[UUID, Refusal] = {}
    missing: list[ScheduledTask] = []
    for attempt in attempts:
        if (reason := refusal(attempt, entities, exits, now)) is not None:
            found[attempt.task.id] = reason
            if reason is GONE:
                missing.append(attempt.task)
    return found | not_seen(missing, using=using) if missing else found


def _without(refused: Mapping[UUID, object], attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    return [attempt for attempt in attempts if attempt.task.id not in refused] if refused else attempts


def refusal(
    attempt: Attempt, entities: Entities, exits: Mapping[UUID, str], now: datetime
) -> Reason | Rest | BaseException | None:
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
        return GONE
    try:
        with catching(caught):
            reason = superseded(attempt, now) or _expired(attempt, now)
            return is_outside(attempt) if reason is None and attempt.declared.options.window is not None else reason
    except BaseException as died:  # noqa: BLE001 (raised when it is recorded)
        return died
    return caught[0]


def _read_runs(tasks: Sequence[ScheduledTask], using: str) -> tuple[set[UUID], Mapping[str, bool]]:
    """Give each task its run. Return the ids of tasks whose run is gone, and the flags of features (none: not read)."""
    asked = dict(hooks().flags)
    rows = TimelineRun.objects.using(using).filter(Among({task.run_id for task in tasks}))
    runs = {run.pk: run for run in read_models(rows.extra(select=asked))}  # noqa: S610 (texts of ours)
    # The query adds them to the runs for a moment.
    told = {name: [run.__dict__.pop(name) for run in runs.values()] for name in asked} if runs else {}
    there = [task for task in tasks if task.run_id in runs]
    for task in there:
        task.run = runs[task.run_id]
    return {task.id for task in tasks} - {task.id for task in there}, {
        name: any(values) for name, values in told.items()
    }


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


def pass_look(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[ScheduledTask]]:
    """Take the last look; give the attempts that may go on, and the tasks that have ended because they must not run."""
    with runtime.watch.looking():
        passed, outcomes = _look(attempts, runtime)
    ended = record_outcomes(outcomes, runtime) if outcomes else []
    for died in filter(None, (deadly(end) for _attempt, end in outcomes)):
        raise died
    return passed, ended


def look_again(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[Outcome]]:
    """
    Take the last look at attempts that may have been cancelled meanwhile, inside or outside a transaction. Returns the
    attempts that may go on, and outcomes, not recorded yet, of those that must not. Others are not ours any more.
    """
    ours = still_ours(attempts, using=runtime.using)
    return _look(ours, runtime) if ours else ([], [])


def _look(attempts: Sequence[Attempt], runtime: Runtime) -> tuple[list[Attempt], list[Outcome]]:
    now = runtime.clock()
    refused = look(attempts, now=now, using=runtime.using)
    if not refused:
        return list(attempts), []
    ended = [attempt for attempt in attempts if attempt.task.id in refused]
    outcomes: list[Outcome] = [(attempt, _outcome_of(attempt, refused[attempt.task.id], now)) for attempt in ended]
    return list(_without(refused, attempts)), outcomes


def pass_fresh_look(
    attempts: Sequence[Attempt], runtime: Runtime, *, late: bool
) -> tuple[list[Attempt], list[ScheduledTask]]:
    """
    Take the last look, and let the time of the attempts begin after it: the look takes none of it. ``late`` is whether they
    have waited since they were begun: then somebody may have cancelled them.
    """
    if late:
        with runtime.watch.looking():
            attempts = still_ours(attempts, using=runtime.using)
    passed, refused = pass_look(attempts, runtime) if attempts else ([], [])
    now = monotonic()
    for attempt in passed:
        attempt.seen_at = now
    return passed, refused


def _outcome_of(attempt: Attempt, refused: Refusal, now: datetime) -> Write | BaseException:
    """The outcome of an attempt whose handler is not entered: it is cancelled, rests, has failed, or is given back."""
    if isinstance(refused, Exception):
        return failed(attempt, refused, now)  # No handler raised this error, so it is no answer for a machine.
    if isinstance(refused, Write):
        return refused
    if isinstance(refused, Rest):
        return replace(at_rest(attempt, refused, again=LOOKS_AGAIN_SOON), entered=False)
    if isinstance(refused, BaseException):
        return refused  # It ends this thread.
    if refused.code == ReasonCode.HOLD:  # Its due time stays; nothing is counted, and no budget touched.
        return Write(task=attempt.task, triggers=(Trigger.RETRY,), reason=refused, entered=False)
    return Write(task=attempt.task, triggers=(Trigger.CANCEL,), reason=refused, entered=False)


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
    matching = _matching(attempts, guard, using)
    no = [attempt for attempt in attempts if (attempt.task.entity_ref in matching) is (option != "only_if")]
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
    return None if hours.is_open(task.nominal_at, zone_for(attempt)) else reasons.OUTSIDE(hours=hours.said)
