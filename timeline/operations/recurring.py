"""
Recur: begin the runs of timelines that start by the clock. Each of these timelines always has one run ahead of now. Timelines
that the clock does not start any more have none.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from timeline import reasons
from timeline.conf import get_settings
from timeline.definition import Definition, Recurring
from timeline.dialects import dialect_of
from timeline.lifecycle import RunEnd
from timeline.models import TimelineRun
from timeline.models.entities import NO_ENTITY
from timeline.operations._calling_off import call_off
from timeline.operations._clockless import call_off_left, may_be_left
from timeline.operations.reconciling import reconcile_locked
from timeline.planning.recurrences import Due, Known, Passed, Recurrence, recurrence
from timeline.registry import registry
from timeline.runs import end
from timeline.store.alerting import alert_missed
from timeline.store.beginning import Beginning, begin_runs, constantly, plan_runs
from timeline.store.locking import lock_runs
from timeline.store.polling import polling
from timeline.store.slots import hold_waiting, last_slots, try_system, waiting_among

logger = logging.getLogger("timeline")


@dataclass(slots=True)
class Ahead:
    """
    For each timeline, as it was declared then, the time when there is something to do. A process remembers this of a database,
    so that a poll with nothing to begin makes no query.
    """

    at: dict[str, tuple[Recurring, datetime]] = field(default_factory=dict)
    has_looked: bool = False

    def left(self) -> list[str]:
        """
        Names of timelines for which a clock may have left a run behind. They are given once in a process, which a deploy starts
        anew: an older process, which does not know of a new clock, must not cancel what that clock has begun.
        """
        return [] if self.has_looked else [known.name for known in registry if may_be_left(known)]

    def due(self, now: datetime) -> list[Definition]:
        """Timelines for which there may be something to do."""
        return [
            known for known in registry if known.recurring is not None and self._is_due(known, known.recurring, now)
        ]

    def _is_due(self, definition: Definition, recurring: Recurring, now: datetime) -> bool:
        told, at = self.at.get(definition.name, (None, now))
        return told != recurring or at <= now


def recur(ahead: Ahead, *, now: datetime, using: str) -> int:
    """
    Begin the runs whose time has come, and make the run ahead of each timeline. Several processes may do so at once.

    Args:
        ahead: What this process remembers of the database. It is updated.
        now: Story time.
        using: Database alias.

    Returns:
        How many runs were begun; also 0 if somebody else has the lock of system timelines: a later poll tries again.
    """
    if not get_settings().AUTOSTART:
        return 0
    due, left = ahead.due(now), ahead.left()
    if not due and not left:
        return 0
    with polling(using):
        if not try_system(using=using):
            return 0
        if left:
            call_off_left(left, now=now, using=using)
        decided, begun = _come_to(due, now=now, using=using) if due else ([], 0)
    # Remember it only after the commit.
    ahead.has_looked = True
    ahead.at |= {known.name: (known.recurring, answer.ahead) for known, answer in decided if known.recurring}
    return begun


def _come_to(
    due: Sequence[Definition], *, now: datetime, using: str
) -> tuple[list[tuple[Definition, Recurrence]], int]:
    """Do what is due for some timelines. Gives what was decided for each, and how many runs were begun."""
    runs = last_slots([definition.name for definition in due], using=using)
    waiting = waiting_among([several[0] for several in runs.values()], using=using)
    answers = [(known, _decide(known, runs.get(known.name, []), waiting, now)) for known in due]
    decided = [(known, answer) for known, answer in answers if answer is not None]
    return decided, _carry_out(decided, runs, now=now, using=using)


def _decide(
    definition: Definition, runs: Sequence[TimelineRun], waiting: Set[UUID], now: datetime
) -> Recurrence | None:
    """Decide what to do for a timeline; None: it has no slot left. An error in one declaration does not stop the others."""
    known = [Known(run.started_at, run.key, run.pk in waiting, run.recorded_at) for run in runs] + [None, None]
    grace = get_settings().overdue_after
    if definition.recurring is None:
        return None
    try:
        return recurrence(definition.recurring, known[0], known[1], grace=grace, now=now)
    except OverflowError:
        logger.error("The timeline %s has no slot any more.", definition.name)
        return None


def _carry_out(
    decided: Sequence[tuple[Definition, Recurrence]],
    runs: Mapping[str, Sequence[TimelineRun]],
    *,
    now: datetime,
    using: str,
) -> int:
    moves, passed = [], []
    for definition, answer in decided:
        last = runs[definition.name][0] if definition.name in runs else None
        if answer.move is not None and last is not None:
            moves.append((last, answer.move))
        if answer.passed is not None and last is not None:
            passed.append((definition, answer.passed, None if answer.passed.key else last))
    _move(moves, now=now, using=using)
    if passed:
        _pass_over(passed, now=now, using=using)
    wanted = [(definition, due) for definition, answer in decided for due in answer.begin]
    return len(_begin(wanted, now=now, using=using))


def _begin(wanted: Sequence[tuple[Definition, Due]], *, now: datetime, using: str) -> list[Beginning]:
    """Begin runs for slots: one statement for each table, however many there are."""
    beginnings = []
    for definition, due in wanted:
        system = {"": [definition]}
        [planned] = plan_runs(system, {NO_ENTITY: None}, key=due.key, begins=constantly(due.at), now=now)
        if planned.problem is not None:
            logger.error("The timeline %s has no proper time: %s", definition.name, planned.problem.in_english())
            continue
        planned.change(once=True)
        beginnings.append(planned)
    return begin_runs(beginnings, now=now, using=using)


def _move(moves: Sequence[tuple[TimelineRun, Due]], *, now: datetime, using: str) -> None:
    """
    Give waiting runs another slot, because their schedule has changed. If that slot has a run already, they stay as they are.
    """
    if not moves:
        return
    there = TimelineRun.objects.using(using).filter(entity_label="", entity_id="", once=True)
    asked = there.filter(timeline__in={run.timeline for run, _due in moves}, key__in={due.key for _run, due in moves})
    taken = {(timeline, key): run_id for timeline, key, run_id in asked.values_list("timeline", "key", "pk")}
    targets = {run.pk: due for run, due in moves if taken.get((run.timeline, due.key), run.pk) == run.pk}
    locked = lock_runs(targets, [NO_ENTITY], using=using)
    waiting = hold_waiting(locked.runs, using=using)
    for run in waiting:
        run.started_at, run.key = targets[run.pk]
    TimelineRun.objects.using(using).bulk_update(waiting, ["started_at", "key"])
    reconcile_locked(waiting, locked.entities, now=now, using=using, lenient=True)


def _pass_over(passed: Sequence[tuple[Definition, Passed, TimelineRun | None]], *, now: datetime, using: str) -> None:
    """
    Let one run with cancelled tasks stand for all slots that are passed over: the waiting run, or a new one. Runs with the same
    range of slots are handled together. People are told.
    """
    new = [(known, Due(slots.last, slots.key)) for known, slots, run in passed if run is None]
    begun = {beginning.alike["timeline"]: beginning.id for beginning in _begin(new, now=now, using=using)}
    ranges: dict[tuple[datetime, datetime], list[UUID]] = defaultdict(list)
    for definition, slots, waits in passed:
        run_id = waits.pk if waits is not None else begun.get(definition.name)
        if run_id is not None:
            ranges[slots.first, slots.last].append(run_id)
    locked = lock_runs([pk for several in ranges.values() for pk in several], [NO_ENTITY], using=using)
    runs = {run.pk: run for run in hold_waiting(locked.runs, using=using)}  # A worker may have begun a run meanwhile.
    texts: dict[str, str] = {}
    for (first, last), run_ids in ranges.items():
        still = [runs[pk] for pk in run_ids if pk in runs]
        if not still:
            continue
        reason = reasons.SLOTS_PASSED(first=first, last=last)
        ids = dialect_of(using).list_of(run.pk.hex for run in still)
        call_off("runs", {"runs": ids}, reason=reason, now=now, using=using)
        end(still, RunEnd.FINISHED, now=now, using=using)
        texts |= dict.fromkeys((run.timeline for run in still), reason.text)
    alert_missed(texts, now=now, using=using)
