"""Drift: open runs whose rows are not what their definition and their entity ask for now."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import connections

from timeline import reasons
from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.dialects import Among, dialect_of
from timeline.exceptions import InvalidInput
from timeline.features.machines.mirror import mirror_runs, shows_another
from timeline.features.plans.drift_query import RunRef, as_uuid, in_doubt, pages_of_open_runs
from timeline.features.sweep.searches import SweepPart, Swept, Taken, each_if_not_all
from timeline.lifecycle import Reason, RunEnd, State
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import Entities, load_entities, models_of
from timeline.models.facts import plan_of, tries_of, wanted_of
from timeline.models.task import ScheduledTaskQuerySet
from timeline.operations.cancel import cancel
from timeline.operations.leave import end_runs
from timeline.operations.reconcile import reconcile_locked
from timeline.operations.sets import BATCH, check_batch_size
from timeline.payloads import check_text
from timeline.planning import Cancel, Keep, Plan
from timeline.registry import registry
from timeline.store.changes import MAX_ACTOR
from timeline.store.database_errors import catching
from timeline.store.locks import RowToPlan, lock_runs, read_rows_to_plan
from timeline.store.missing_entities import rows_there, surely_gone
from timeline.store.returned_rows import read_models
from timeline.store.transactions import atomic

logger = logging.getLogger("timeline")
PLANNED: Final = 500  # How many runs are planned together, if the database cannot decide about them.


def undefined_rows(timeline: str, *, using: str) -> ScheduledTaskQuerySet:
    """Open rows of a timeline whose tasks this process does not have."""
    open_rows = ScheduledTask.objects.using(using).open().filter(task_key__startswith=f"{timeline}.")
    return open_rows.of_nobody(registry.task_keys(), registry.elsewhere())


def is_left_behind(timeline: str, *, using: str) -> bool:
    """Whether this process does not have the timeline, and the database has open runs or open rows of it."""
    if any(definition.name == timeline for definition in registry):
        return False
    has_runs = next(pages_of_open_runs([timeline], size=1, using=using), None) is not None
    return has_runs or undefined_rows(timeline, using=using).exists()


def cancel_undefined(
    timeline: str,
    *,
    actor: str = "",
    reason: str = "",
    size: int = BATCH,
    clock: Callable[[str], datetime],
    using: str,
) -> Iterator[int]:
    """
    Cancel open rows that nothing defines any more; after each batch, give how many. Raises ``InvalidInput``.

    Of a timeline that this process does not have: all of them, and its open runs end. Otherwise those in no run:
    ``apply_choices`` cancels the others. ``reason``: instead of the sentence that nothing defines them.
    """
    check_batch_size(size)
    check_text("actor", actor, MAX_ACTOR)
    if not any(definition.name == timeline for definition in registry):
        why = replace(reasons.NOT_DEFINED(name=timeline), actor=actor)
        for refs in pages_of_open_runs([timeline], size=size, using=using):
            yield end_undefined(refs, why, now=clock(using), using=using)
    rows = undefined_rows(timeline, using=using).filter(run=None).order_by("pk")
    while some := list(rows.values_list("pk", "task_key")[:size]):
        for key in sorted({key for _pk, key in some}):
            why = replace(reasons.NOT_DEFINED(name=key), actor=actor)
            why = replace(why, text=reason, said=None) if reason else why
            ids = [pk for pk, known in some if known == key]
            yield len(cancel(task_ids=ids, reason=why, now=clock(using), using=using))


def end_undefined(refs: Sequence[RunRef], why: Reason, *, now: datetime, using: str) -> int:
    """End open runs of timelines that nothing defines any more, with their open rows. Gives how many rows were cancelled."""
    with atomic(using=using):
        entities = {EntityRef(ref.label, ref.entity_id) for ref in refs}
        locked = lock_runs([ref.id for ref in refs], entities, using=using, fresh=True)
        standing = [run for run in locked.runs if run.is_open]
        return len(end_runs(standing, RunEnd.LEFT, reason=why, now=now, using=using))


class OpenRuns(SweepPart[RunRef]):
    """All open runs, in order of their entities."""

    name = ""
    most = 2000

    def take(self, position: dict[str, Any], *, begins: bool, size: int, using: str) -> Taken:
        """Read the next runs."""
        after = {"label": "", "id": "", "timeline": "", "key": ""} if begins else position
        with connections[using].cursor() as cursor:
            cursor.execute(dialect_of(using).sql("next_runs"), {**after, "size": size})
            rows = cursor.fetchall()
        runs = [RunRef(as_uuid(run_id), *named) for run_id, *named, _run_key in rows]
        if not runs:
            return Taken(runs, after, is_last=True)
        last = runs[-1]
        names = {"label": last.label, "id": last.entity_id, "timeline": last.timeline, "key": rows[-1][-1]}
        return Taken(runs, names, is_last=len(runs) < size)

    def mend(self, some: Sequence[RunRef], *, now: datetime, using: str) -> Swept:
        """Reconcile the runs that have drifted."""
        mended, act = _end_of_nobody(some, now, using), partial(_reconcile, now=now, using=using)
        for runs in drifted_among(some, now=now, using=using):
            mended += each_if_not_all(runs, act, using=using)
        if mended:
            logger.info("Runs mended by the sweep, since their rows were not what they should be: %d.", mended)
        return Swept(looked=len(some), mended=mended, left=True)


def _end_of_nobody(some: Sequence[RunRef], now: datetime, using: str) -> int:
    """End runs of timelines that this process does not have, if the setting says so."""
    if not get_settings().CANCEL_UNDEFINED:
        return 0
    known, ended = {definition.name for definition in registry}, 0
    for name in sorted({ref.timeline for ref in some} - known):
        act = partial(end_undefined, why=reasons.NOT_DEFINED(name=name), now=now, using=using)
        refs = [ref for ref in some if ref.timeline == name]
        each_if_not_all(refs, act, using=using)
        ended += len(refs)
    return ended


def drifted_among(
    refs: Sequence[RunRef], *, now: datetime, using: str, cancels_undefined: bool = False
) -> Iterator[list[TimelineRun]]:
    """Find what ``drifted`` does, in portions; only runs that the database cannot rule out are read and planned."""
    for keys in portions(sorted(in_doubt(refs, now=now, using=using))):
        yield drifted(open_runs(keys, using=using), now=now, using=using, cancels_undefined=cancels_undefined)


def portions(keys: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    """Split runs into portions that are planned together."""
    for begin in range(0, len(keys), PLANNED):
        yield keys[begin : begin + PLANNED]


def open_runs(keys: Collection[UUID], *, using: str) -> list[TimelineRun]:
    """Read the runs that have not ended, in order of their ids."""
    found = TimelineRun.objects.using(using).open().filter(Among(keys)).order_by("pk")
    return read_models(found) if keys else []


def drifted(
    runs: Iterable[TimelineRun], *, now: datetime, using: str, cancels_undefined: bool = False
) -> list[TimelineRun]:
    """
    Find open runs that reconciling would change, also of machines whose entity shows another state. Locks nothing.

    Left out are runs whose timeline is not known here or is about another model now, and those whose entity cannot be read.
    Also those with a task that is being run: its outcome reconciles them. ``cancels_undefined``: as for ``reconcile_locked``.
    """
    known = [
        (run, definition) for run in runs if (definition := registry.about(run.timeline, run.entity_label)) is not None
    ]
    entities = load_entities((run.entity_ref for run, _definition in known), using=using)
    rows, tries = rows_of_runs(known, using), tries_of(known, using=using)
    found, missing = [], []
    for run, definition in known:
        if shows_another(run, definition, entities.get(run.entity_ref)):
            found.append(run)
            continue
        if any(row.state == State.ACTIVE for row in rows[run.pk]):
            continue
        if definition.label and run.entity_ref not in entities:
            missing += [] if run.entity_ref in entities.unreadable else [run]
        elif _has_drifted(run, definition, entities, rows[run.pk], tries, now, cancels_undefined):
            found.append(run)
    return found + _gone(missing, using)


def unless_begun(_run: TimelineRun, planned: Plan) -> Plan:
    """Leave a run as it is if a task that would be cancelled has begun meanwhile: its outcome reconciles the run."""
    if any(isinstance(change, Cancel) and change.row.state == State.ACTIVE for change in planned.changes):
        return Plan(foreseen=planned.foreseen, open=True)
    return planned


def rows_of_runs(known: Sequence[tuple[TimelineRun, Definition]], using: str) -> dict[UUID, list[RowToPlan]]:
    """Read the columns of tasks that planning needs."""
    rows: dict[UUID, list[RowToPlan]] = defaultdict(list)
    for task in read_rows_to_plan(wanted_of(known), using=using):
        if task.run_id is not None:
            rows[task.run_id].append(task)
    return rows


def _has_drifted(
    run: TimelineRun,
    definition: Definition,
    entities: Entities,
    rows: list[RowToPlan],
    tries: Mapping[UUID, int],
    now: datetime,
    cancels_undefined: bool,
) -> bool:
    caught: list[Exception] = []
    with catching(caught):
        entity = entities.get(run.entity_ref)
        planned = plan_of(
            run,
            definition,
            entity,
            rows,
            now=now,
            tries=tries,
            foresees=False,
            cancels_undefined=cancels_undefined,
        )
        return not planned.open or not all(isinstance(change, Keep) for change in planned.changes)
    error = caught[0]
    said = error.in_english() if isinstance(error, InvalidInput) else error
    logger.warning("%s is left as it is until its entity is mended: %s", run, said)
    return False


def _gone(runs: list[TimelineRun], using: str) -> list[TimelineRun]:
    """Runs whose entities were provably deleted; what a manager of the host hides was not."""
    missing = {run.entity_ref for run in runs}
    for model, keys in models_of(missing):
        missing -= rows_there(model, keys, using=using)
    gone = surely_gone(missing, using=using) if missing else set()
    return [run for run in runs if run.entity_ref in gone]


def _reconcile(runs: Sequence[TimelineRun], *, now: datetime, using: str) -> int:
    locked = lock_runs([run.pk for run in runs], [run.entity_ref for run in runs], using=using)
    reconcile_locked(locked.runs, locked.entities, now=now, using=using, lenient=True, choose=unless_begun)
    if shown := mirror_runs(locked.runs, using=using):
        logger.info("States of machines that the sweep wrote anew where their entities show them: %d.", shown)
    return len(locked.runs)
