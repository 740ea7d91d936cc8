"""Drift: open runs whose rows are not what their definition and their entity ask for now."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import connections
from django.db.models import QuerySet

from timeline.definition import Definition
from timeline.dialects import dialect_of
from timeline.exceptions import InvalidInput
from timeline.lifecycle import State
from timeline.models import EntityRef, TimelineRun
from timeline.models.among import Among
from timeline.models.entities import Entities, label_of, load_entities, models_of
from timeline.models.facts import plan_of
from timeline.models.visits import tries_of, wanted_of
from timeline.operations._parting import Part, Swept, Taken, each_if_not_all
from timeline.operations.reconciling import reconcile_locked
from timeline.planning import Cancel, Keep, Plan
from timeline.registry import registry
from timeline.store.errors import catching
from timeline.store.locking import lock_runs
from timeline.store.mirroring import mirror_runs, shows_another
from timeline.store.returning import read_models
from timeline.store.rows_to_plan import RowToPlan, read_rows_to_plan
from timeline.store.standing import RunRef, as_uuid, in_doubt

logger = logging.getLogger("timeline")


PLANNED: Final = 500  # How many runs are planned together, if the database cannot decide about them.


class OpenRuns(Part[RunRef]):
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
        mended, act = 0, partial(_reconcile, now=now, using=using)
        for runs in drifted_among(some, now=now, using=using):
            mended += each_if_not_all(runs, act, using=using)
        if mended:
            logger.info("The sweep mended %d runs whose rows were not what they should be.", mended)
        return Swept(looked=len(some), mended=mended, left=True)


def drifted_among(refs: Sequence[RunRef], *, now: datetime, using: str) -> Iterator[list[TimelineRun]]:
    """
    Find the open runs that reconciling would change, as ``drifted`` does, one portion at a time. Only runs that the database
    cannot rule out are read and planned.
    """
    for keys in portions(sorted(in_doubt(refs, now=now, using=using))):
        yield drifted(open_runs(keys, using=using), now=now, using=using)


def portions(keys: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    """Split runs into portions that are planned together."""
    for begin in range(0, len(keys), PLANNED):
        yield keys[begin : begin + PLANNED]


def open_runs(keys: Collection[UUID], *, using: str) -> list[TimelineRun]:
    """Read the runs that have not ended, in order of their ids."""
    found = TimelineRun.objects.using(using).open().filter(Among(keys)).order_by("pk")
    return read_models(found) if keys else []


def drifted(runs: Iterable[TimelineRun], *, now: datetime, using: str) -> list[TimelineRun]:
    """
    Find the open runs that reconciling would change. Locks nothing, and takes a few statements.

    A run of a machine whose entity shows another state is one of them. Left out are: runs of a timeline that is not known here,
    or is about another model now; runs with a task that is being run, since its outcome reconciles them; and runs whose entity
    cannot be read.
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
        elif _has_drifted(run, definition, entities, rows[run.pk], tries, now):
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
) -> bool:
    caught: list[Exception] = []
    with catching(caught):
        entity = entities.get(run.entity_ref)
        planned = plan_of(run, definition, entity, rows, now=now, tries=tries, foresees=False)
        return not planned.open or not all(isinstance(change, Keep) for change in planned.changes)
    error = caught[0]
    said = error.in_english() if isinstance(error, InvalidInput) else error
    logger.warning("%s is left as it is until its entity is mended: %s", run, said)
    return False


def _gone(runs: list[TimelineRun], using: str) -> list[TimelineRun]:
    """The runs whose entities do not exist. A manager of the host may hide entities that exist, so it is not used."""
    there = {
        EntityRef(label_of(model), str(key))
        for model, keys in models_of(run.entity_ref for run in runs)
        for key in QuerySet(model, using=using).filter(Among(keys)).values_list("pk", flat=True)
    }
    return [run for run in runs if run.entity_ref not in there]


def _reconcile(runs: Sequence[TimelineRun], *, now: datetime, using: str) -> int:
    locked = lock_runs([run.pk for run in runs], [run.entity_ref for run in runs], using=using)
    reconcile_locked(locked.runs, locked.entities, now=now, using=using, lenient=True, choose=unless_begun)
    if shown := mirror_runs(locked.runs, using=using):
        logger.info("The sweep wrote the states of %d machines anew where their entities show them.", shown)
    return len(locked.runs)
