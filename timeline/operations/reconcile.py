"""Reconcile: change the rows of runs to what their definition asks for. Called after every change that may matter to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from itertools import chain
from uuid import UUID

from django.db.models import Model

from timeline import reasons
from timeline.definition import Definition
from timeline.exceptions import InvalidInput
from timeline.features.waits.store import refs_led_to
from timeline.hooks import hooks
from timeline.ids import fresh_ids
from timeline.lifecycle import ReasonCode, RunEnd, State, Trigger
from timeline.models import EntityRef, ScheduledTask, TimelineRun, ref_of
from timeline.models.entities import Entities, load_entities
from timeline.models.facts import plan_of, tries_of, wanted_of
from timeline.operations.current import running
from timeline.operations.leave import end_runs
from timeline.operations.sets import portions_of
from timeline.operations.succession import succeed
from timeline.planning import Cancel, Create, Keep, Move, Plan, TaskRow
from timeline.registry import registry
from timeline.runs import end
from timeline.store.locks import lock_rows_to_plan, lock_runs
from timeline.store.missing_entities import surely_gone
from timeline.store.multi_query import pipelining
from timeline.store.new_rows import new_task, send_tasks
from timeline.store.signal_dispatch import announce, may_hosts_write
from timeline.store.transactions import atomic
from timeline.store.transition import Write, send_writes
from timeline.timing import When

logger = logging.getLogger("timeline")
Planned = tuple[TimelineRun, Definition, Plan]


def seen_again(runs: Sequence[TimelineRun], *, using: str) -> Entities:
    """Read locked runs, and their entities, again: receivers, or effects of moves, may have changed them."""
    found = TimelineRun.objects.using(using).in_bulk([run.pk for run in runs])
    for run in runs:
        run.__dict__.update((name, value) for name, value in vars(found[run.pk]).items() if name != "_state")
    return load_entities({run.entity_ref for run in runs if run.entity_label}, using=using)


def end_vanished(
    known: Sequence[tuple[TimelineRun, Definition]], missing: Set[EntityRef], *, now: datetime, using: str
) -> Set[EntityRef]:
    """End runs of missing entities that surely were deleted. Gives the others: nothing of them changes."""
    gone = surely_gone(missing, using=using)
    if ended := [run for run, definition in known if definition.label and run.entity_ref in gone]:
        end_runs(ended, RunEnd.ENTITY_GONE, reason=reasons.DELETED(), now=now, using=using)
    return missing - gone


def rebinding(plans: Iterable[tuple[Definition, Plan]], *, now: datetime, using: str) -> list[Write]:
    """
    Writes for resting tasks that wait for another entity by now: they become due. One statement for each path to an entity.
    """
    asked = [
        (task, when, path) for definition, planned in plans for task, when, path in _at_rest(definition, planned, now)
    ]
    if not asked:
        return []
    there = refs_led_to([(task.entity_ref, path) for task, _when, path in asked], using=using)
    writes = [
        Write(task=task, triggers=(Trigger.DUE,), scheduled_at=now, reason=reasons.AWAITS_ANOTHER(whose=when.whose))
        for (task, when, _path), of in zip(asked, there, strict=True)
        if of != _awaited(task)
    ]
    if writes:
        announce(using=using)
    return writes


def _at_rest(definition: Definition, planned: Plan, now: datetime) -> Iterator[tuple[ScheduledTask, When, str]]:
    """Tasks that wait because of their schedule, not because of their handler."""
    if not definition.awaited_fields:
        return
    for row in (change.row for change in planned.changes if isinstance(change, Keep)):
        when = definition.tasks[row.task_name].when if row.task_name in definition.tasks else None
        if when is None or not isinstance(when.awaits_of, str) or not isinstance(row, ScheduledTask):
            continue
        is_bound = row.awaits == " ".join(when.awaits)
        # A task that was moved may have failed before, and must not run early then.
        was_moved = row.reason_code == ReasonCode.MOVED and not (row.failures or row.lost)
        is_unbound = not row.awaits and (row.reason_code == ReasonCode.WAITING or was_moved)
        if row.state == State.RETRYABLE and row.scheduled_at > now and (is_bound or is_unbound):
            yield row, when, when.awaits_of


def _awaited(task: ScheduledTask) -> EntityRef | None:
    return EntityRef(task.awaits_label, task.awaits_id) if task.awaits else None


def plans_of(
    alive: Iterable[tuple[TimelineRun, Definition]],
    entities: Entities,
    rows: Mapping[UUID, Sequence[TaskRow]],
    tries: Mapping[UUID, int],
    *,
    now: datetime,
    lenient: bool,
    choose: Callable[[TimelineRun, Plan], Plan] | None = None,
    cancels_undefined: bool = False,
) -> list[Planned]:
    """Plan open runs; arguments and errors as for ``reconcile_locked``. ``tries``: what ``tries_of`` gives for the runs."""
    plans: list[Planned] = []
    asked = partial(
        plan_of, now=now, spare=running(), tries=tries, foresees=not lenient, cancels_undefined=cancels_undefined
    )
    for run, definition in alive:
        try:
            if definition.followed_fields and (unreadable := entities.unreadable.get(run.entity_ref)):
                raise unreadable
            planned = asked(run, definition, entities.get(run.entity_ref), rows.get(run.id, []))
            plans.append((run, definition, planned if choose is None else choose(run, planned)))
        except InvalidInput as error:
            if not lenient:
                error.of(run.entity_ref)
                raise
            logger.error("%s is not reconciled until its entity is mended: %s", run, error.in_english())
    return plans


def carry_out(
    plans: Sequence[Planned], rows: Iterable[TaskRow], *, now: datetime, using: str
) -> Callable[[], list[ScheduledTask]]:
    """Write the changes of plans, or send them without waiting. Call the result to get the tasks created."""
    writes, tasks = changes_of(plans, now=now)
    if any(definition.awaited_fields for _run, definition, _planned in plans):
        writes += rebinding([(definition, planned) for _run, definition, planned in plans], now=now, using=using)
    if any(task.previous_id is not None for task in tasks):
        for hand_on in hooks().successions:
            writes = hand_on(writes, tasks, earlier=rows, using=using)
    changed = send_writes(writes, now=now, using=using)
    created = send_tasks(tasks, using=using) if tasks else list[ScheduledTask]

    def done() -> list[ScheduledTask]:
        changed()
        return created()

    return done


def changes_of(plans: Iterable[Planned], *, now: datetime) -> tuple[list[Write], list[ScheduledTask]]:
    """The rows to write for plans: changes of existing rows, and new rows."""
    writes, tasks, ids = [], [], fresh_ids()
    for run, definition, planned in plans:
        for change in planned.changes:
            match change:
                case Cancel(row=ScheduledTask() as row, reason=reason):
                    writes.append(Write(task=row, triggers=(Trigger.CANCEL,), reason=reason))
                case Move(row=ScheduledTask() as row, times=times, reason=reason):
                    fingerprint = definition.tasks[row.task_name].fingerprint
                    writes.append(Write(task=row, times=times, definition_hash=fingerprint, reason=reason))
                case Create():
                    tasks.append(new_task(run, definition, change, key=next(ids), now=now))
                case Keep():
                    pass
    return writes, tasks


def reconcile_locked(
    runs: Iterable[TimelineRun],
    entities: Entities,
    *,
    now: datetime,
    using: str,
    lenient: bool = False,
    there: Collection[EntityRef] = (),
    moved: bool = False,
    rows: Mapping[UUID, Sequence[TaskRow]] | None = None,
    choose: Callable[[TimelineRun, Plan], Plan] | None = None,
    cancels_undefined: bool = False,
) -> list[ScheduledTask]:
    """
    Reconcile the open ones of locked runs with their entities, in a fixed number of statements. Returns the tasks created.

    Args:
        entities: A missing one, unless ``unreadable`` or in ``there``, was deleted if that is proved; otherwise its runs stay.
        lenient: Whether to leave a run, and not to raise, if its entity gives no usable time: for workers and operators.
        there: Entities that exist, and were not read because none of their fields is needed.
        moved: Whether these are runs of machines that have just moved.
        rows: Id of a run → its rows, if they were read before. Rows that may change are locked.
        choose: Gives the plan to carry out; None: the run's own.
        cancels_undefined: Whether a person has asked for it, as for ``plan``.

    Raises the errors of ``reconcile``, unless it is ``lenient``; nothing is changed then.
    """
    if (runs := list(runs)) and may_hosts_write():
        entities, there = seen_again(runs, using=using), ()
    known = [(run, one) for run in runs if run.is_open and (one := registry.about(run.timeline, run.entity_label))]
    present = entities.keys() | entities.unreadable.keys() | set(there)
    missing = {run.entity_ref for run, definition in known if definition.label} - present
    unseen = end_vanished(known, missing, now=now, using=using) if missing else missing
    alive = [(run, definition) for run, definition in known if run.is_open and run.entity_ref not in unseen]
    unread = [(run, definition) for run, definition in alive if run.id not in (rows or {})]
    standing = {**lock_rows_to_plan(wanted_of(unread, moved=moved), using=using), **(rows or {})}
    tries = tries_of(alive, using=using) if any(definition.backing_off for _run, definition in alive) else {}
    # In portions: while the database writes one, the next is planned. All at once if planning may raise, because nothing must
    # have been written then; or if it may call the host's code, which may query the database meanwhile.
    whole = not lenient or choose is not None or any(entity is not None for entity in entities.values())
    whole = whole or any(definition.asks_of_holidays for _run, definition in alive)
    parts = [alive] if whole else portions_of(alive, using=using)
    plan_some = partial(plans_of, now=now, lenient=lenient, choose=choose, cancels_undefined=cancels_undefined)
    written, nothing_left = list[Callable[[], list[ScheduledTask]]](), list[TimelineRun]()
    with pipelining(using) if len(parts) > 1 else nullcontext():
        for part in parts:
            planned = plan_some(part, entities, standing, tries)
            read = chain.from_iterable(standing.get(run.id, []) for run, _definition in part)
            written.append(carry_out(planned, read, now=now, using=using))
            nothing_left += [run for run, _definition, plan in planned if not plan.open]
    created = [task for done in written for task in done()]
    if nothing_left:
        end(nothing_left, RunEnd.FINISHED, now=now, using=using)
        succeed(nothing_left, now=now, using=using)
    return created


def reconcile(*, entity: Model | EntityRef, now: datetime, using: str) -> None:
    """
    Reconcile all open runs of an entity, for every model of its family: for example after a bulk update, which no signal sees.

    Raises:
        DateOutOfRange, NaiveDatetime, UnreadableEntity: if the entity gives no usable time; nothing is changed then.
    """
    ref = ref_of(entity)
    with atomic(using=using):
        runs = list(TimelineRun.objects.using(using).open().for_entity(ref).only("entity_label", "entity_id"))
        refs = {ref, *(run.entity_ref for run in runs)}
        locked = lock_runs([run.pk for run in runs], refs, fresh=True, using=using)
        reconcile_locked(locked.runs, locked.entities, now=now, using=using)
        for tell in hooks().reconciled:
            tell(locked.runs, using=using)
