"""Start: begin runs by hand, and write their tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple

from django.db.models import DateField, F, Model
from django.utils.translation import gettext_lazy as _

from timeline import reasons
from timeline.definition import Definition, Task
from timeline.dialects import dialect_of
from timeline.exceptions import InvalidInput, WrongEntity
from timeline.hooks import asked_for, hooks
from timeline.lifecycle import ReasonCode
from timeline.models import EntityRef, TimelineRun, model_of, ref_of
from timeline.models.entities import Entities, naming
from timeline.models.facts import moment_in
from timeline.operations.leave import call_off
from timeline.operations.reconcile import reconcile_locked
from timeline.operations.sets import Portion, Tally, check_spread, in_portions, rounds
from timeline.payloads import check_is_dict, check_json, check_text
from timeline.registry import registry
from timeline.runs import MAX_KEY
from timeline.store.locks import lock_batch, lock_entity_now
from timeline.store.run_insert import Beginning, Begins, begin_runs, constantly, needs_savepoint, plan_runs
from timeline.store.transactions import atomic, in_transaction
from timeline.timing import check_time


class Past(StrEnum):
    """What happens to a task that was due before its run began."""

    RUN = "run"  # It is due at once.
    SKIP = "skip"  # It is cancelled for good, as by an operator.
    EXPIRE = "expire"  # It is cancelled as too late; if its date changes, it is made again.


_CODES: Final = {Past.SKIP: ReasonCode.OPERATOR, Past.EXPIRE: ReasonCode.EXPIRED}


def check_past(past: str) -> Past:
    """Check the value that the caller gave. Raises ``InvalidInput`` for ``past``."""
    if past not in list(Past):
        remedy = _("Give one of %(known)s.")
        raise InvalidInput("past", _("%(value)r is not allowed."), remedy, value=past, known=", ".join(Past))
    return Past(past)


def is_past(definition: Definition, columns: Mapping[str, Any], now: datetime) -> bool:
    """
    Whether a row planned for a new run was due before now; not before its window opens, not if it waits for an event, and not
    if it is a timer: without it, the machine would stay in its state for ever.
    """
    if columns["nominal_at"] >= now or columns.get("awaits"):
        return False
    declared = definition.tasks[columns["task_key"].partition(".")[2]]
    return (columns["planned_at"] < now or _is_earlier(declared)) and not declared.is_timer


def _is_earlier(declared: Task[Any, ..., Any]) -> bool:
    """Whether it is due before its nominal time if that is outside its window: then it is past when its nominal time is."""
    hours = declared.options.window
    return hours is not None and hours.outside == "previous"


def call_off_past(
    definition: Definition,
    begun: Sequence[Beginning],
    entities: Mapping[EntityRef, Model | None],
    past: Past,
    *,
    actor: str,
    now: datetime,
    using: str,
) -> int:
    """
    Cancel tasks that were due before these runs began just now (not with ``RUN``), by one statement; gives how many. Repeated
    tasks go on from there, and runs without other tasks end.
    """
    if past == Past.RUN:
        return 0
    late = {
        known.id: kinds
        for known in begun
        if (kinds := {columns["task_key"] for columns in known.planned if is_past(definition, columns, now)})
    }
    if not late:
        return 0
    dialect = dialect_of(using)
    passed = sorted(set().union(*late.values()))
    named = {
        "runs": dialect.list_of(key.hex for key in late),
        "kinds": dialect.list_of(passed),
        "earlier": dialect.list_of(kind for kind in passed if _is_earlier(definition.tasks[kind.partition(".")[2]])),
    }
    reason = replace(reasons.PASSED(), code=_CODES[past], actor=actor)
    cancelled = call_off("runs", named, before=now, reason=reason, now=now, using=using)
    aside = {definition.task_key(name) for name in definition.aside}
    # Repeated tasks go on, and a run without other tasks ends.
    concerned = [
        known
        for known in begun
        if known.id in late
        and (definition.repeated or {columns["task_key"] for columns in known.planned} <= late[known.id] | aside)
    ]
    if concerned:
        there = Entities({ref: entity for ref, entity in entities.items() if entity is not None})
        runs = [known.run(using=using) for known in concerned]
        reconcile_locked(runs, there, there=entities.keys(), now=now, using=using)
    return len(cancelled)


class Started(NamedTuple):
    """A run, and whether it is new: false if a run was open already, or may begin only once. That run is left as it is."""

    run: TimelineRun
    created: bool


def start(
    *,
    timeline: str,
    entity: Model | EntityRef | None,
    key: str,
    params: dict[str, Any],
    started_at: datetime | None,
    now: datetime | None = None,
    using: str,
) -> Started:
    """
    Start a run of a timeline by hand.

    Args:
        timeline: Its name.
        entity: The entity of the run; None for a system timeline.
        key: Tells runs of the same timeline and entity apart; at most one is open for each key.
        params: Kept on the run, for handlers. JSON.
        started_at: The time from which the times of tasks count (aware); None: now.

    Raises:
        UnknownTimeline, WrongEntity, InvalidInput, NotPlainJSON, PayloadTooLarge, DateOutOfRange: nothing is written then.
    """
    definition = registry.timeline(timeline)
    ref = ref_of(entity, definition.label)
    _check_entity(definition, ref)
    _check_run(key, params)
    since = None if started_at is None else check_time("started_at", started_at)
    with in_transaction(using):
        entities, now = lock_entity_now(ref, read=bool(definition.followed_fields), now=now, using=using)
        begins = constantly(since or now)
        begun = start_locked([definition], entities, key=key, params=params, begins=begins, now=now, using=using)
        if begun:
            run = begun[0].run(using=using)
            for tell in asked_for(hooks().instances, [run]):
                tell(entity, [run])
            return Started(run, True)
        there = TimelineRun.objects.using(using).filter(naming(ref), timeline=definition.name, key=key)
        # With ``once``, the run may have ended; an open one comes first.
        return Started(there.order_by(F("ended_at").desc(nulls_first=True), "-pk")[0], False)


def start_many(
    *,
    timeline: str,
    batches: Iterable[Portion],
    key: str,
    params: dict[str, Any],
    started_at: datetime | str | None,
    spread: timedelta | None = None,
    past: Past = Past.RUN,
    actor: str = "",
    clock: Callable[[str], datetime],
) -> Tally:
    """
    Start a run for each of many entities, with the same result as ``start`` for each: one transaction and a fixed number of
    statements for each batch.

    Args:
        timeline: Its name.
        batches: The entities.
        key, params: As for ``start``, the same for each run.
        started_at: The time from which the times of tasks count (aware), or the name of a date or datetime field of the entity;
            None: now.
        spread: If given, the first tasks of the runs become due up to so much later, each run's at a moment of its own; 30 days
            at most.
        past: What happens to tasks that were due before.
        actor: Who decided that.
        clock: Gives the story time of a database. It is asked once for each batch, when the entities are locked.

    Returns:
        What was done; ``again`` counts entities that had an open run, ``cancelled`` counts tasks that were due before.

    Raises:
        As for ``start``. Nothing of the batch with the wrong entity is written then; earlier batches stay.
    """
    definition = registry.timeline(timeline)
    _check_run(key, params)
    check_spread(spread)
    begins = begins_of(definition, started_at)
    read = bool(definition.followed_fields) or isinstance(started_at, str)

    def start_some(entities: Mapping[EntityRef, Model | None], *, now: datetime, using: str) -> Tally:
        since = begins or constantly(now)
        begun = start_locked(
            [definition], entities, key=key, params=params, begins=since, spread=spread, now=now, using=using
        )
        tasks = sum(len(known.planned) for known in begun)
        passed = call_off_past(definition, begun, entities, past, actor=actor, now=now, using=using)
        return Tally(again=len(entities) - len(begun), started=len(begun), tasks=tasks, cancelled=passed)

    tally = Tally()
    for batch in batches:
        for ref in batch.refs:
            _check_entity(definition, ref)
        now = None
        with atomic(using=batch.using):
            for part in rounds(batch.refs):
                entities = lock_batch(part, gone=batch.gone, read=read, using=batch.using)
                now = now or clock(batch.using)
                work = partial(start_some, now=now, using=batch.using)
                tally += in_portions(work, entities, whole=definition.asks_of_holidays, using=batch.using)
    return tally


def start_locked(
    definitions: Sequence[Definition],
    entities: Mapping[EntityRef, Model | None],
    *,
    key: str = "",
    params: dict[str, Any] | None = None,
    begins: Begins,
    spread: timedelta | None = None,
    now: datetime,
    using: str,
) -> list[Beginning]:
    """Start a run of each definition for entities that the caller has locked, unless one is open already."""
    each = {ref.label: definitions for ref in entities}
    beginnings = plan_runs(each, entities, key=key, params=params, begins=begins, spread=spread, now=now)
    with atomic(using=using, savepoint=needs_savepoint(beginnings)):
        return begin_runs(beginnings, now=now, using=using)


def begins_of(definition: Definition, started_at: datetime | str | None) -> Begins | None:
    """The time from which the times of tasks count; None: from now, whenever that is."""
    if started_at is None:
        return None
    if not isinstance(started_at, str):
        return constantly(check_time("started_at", started_at))
    model = model_of(definition.label)
    columns = {column.name: column for column in model._meta.concrete_fields} if model else {}
    if not isinstance(columns.get(started_at), DateField):
        problem = _("%(name)r is no date or datetime field of %(model)s.")
        remedy = _("Name one, or give an aware datetime.")
        raise InvalidInput("started_at", problem, remedy, name=started_at, model=definition.label or _("the system"))
    return partial(moment_in, started_at)


def _check_run(key: str, params: dict[str, Any]) -> None:
    check_text("key", key, MAX_KEY)
    check_is_dict("params", params)
    check_json("params", params)


def _check_entity(definition: Definition, ref: EntityRef) -> None:
    if ref.label != definition.label:
        said = {"timeline": definition.name, "wanted": definition.label or _("no entity"), "entity": ref}
        problem = _("the timeline %(timeline)r is about %(wanted)s, not %(entity)s.")
        raise WrongEntity(problem, _("Give the entity it is about."), **said)
