"""Begin the runs of timelines that start by the clock, of which one is always ahead of now. Without a clock, there is none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import connections

from timeline.conf import get_settings
from timeline.definition import Definition, Recurring
from timeline.dialects import dialect_of
from timeline.engine.attempts import Attempt
from timeline.features.recurring.declaration import SLOT_KEY
from timeline.features.recurring.planner import Due, Passed, Recurrence
from timeline.features.recurring.runs import begin_slots, decide
from timeline.features.recurring.sentences import ENDED_BEFORE, NO_CLOCK, OVERLAPS, SLOTS_PASSED
from timeline.features.recurring.store import Behind, clear, end_of, last_slots, lock_waiting, try_system, waiting_among
from timeline.features.waits.wake import wake_named
from timeline.lifecycle import Reason, ReasonCode, RunEnd
from timeline.models import TimelineRun
from timeline.models.entities import NO_ENTITY
from timeline.operations.leave import call_off
from timeline.operations.reconcile import reconcile_locked
from timeline.registry import registry
from timeline.runs import end
from timeline.store.alerts import alert_missed
from timeline.store.locks import lock_runs
from timeline.store.poll_queries import polling


def may_be_left(definition: Definition) -> bool:
    """Whether a clock may have started this timeline once. With ``once`` this cannot be told: any start leaves the same row."""
    return not definition.label and definition.recurring is None and not definition.once


def call_off_left(timelines: Sequence[str], *, now: datetime, using: str) -> int:
    """
    Cancel waiting runs of timelines that no clock starts any more, unless one of their tasks has begun; gives how many. The
    caller holds the lock of system timelines. Their slots are free again, in case the clock comes back in time.
    """
    asked = TimelineRun.objects.using(using).open().filter(entity_label="", entity_id="", once=True)
    asked = asked.filter(timeline__in=timelines, started_by__isnull=True, key__regex=SLOT_KEY)
    left = list(asked.values_list("pk", flat=True))
    if not left:
        return 0
    runs = lock_waiting(lock_runs(left, [NO_ENTITY], using=using).runs, using=using)
    if runs:
        ids = dialect_of(using).list_of(run.pk.hex for run in runs)
        call_off("runs", {"runs": ids}, reason=NO_CLOCK(), now=now, using=using)
        end(runs, RunEnd.FINISHED, now=now, using=using)
        TimelineRun.objects.using(using).filter(pk__in=[run.pk for run in runs]).update(once=False)
    return len(runs)


@dataclass(slots=True)
class NextBeginnings:
    """When each timeline has something to do: a memory of the process, so that a poll with nothing to begin asks nothing."""

    at: dict[str, tuple[Recurring, datetime]] = field(default_factory=dict)
    has_looked: bool = False

    def left(self) -> list[str]:
        """
        Names of timelines for which a clock may have left a run behind, given once in a process. An older process that does
        not know of a new clock must not cancel what that has begun.
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


def recur(ahead: NextBeginnings, *, now: datetime, using: str) -> int:
    """
    Begin the runs whose time has come, and those ahead; gives how many. Several processes may do so at once. If somebody else
    has the lock of system timelines, 0 is given, and a later poll tries again. ``ahead`` is updated.
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
    answers = [(known, decide(known, runs.get(known.name, []), waiting, now)) for known in due]
    decided = [(known, answer) for known, answer in answers if answer is not None]
    return decided, _carry_out(decided, runs, now=now, using=using)


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
    return len(begin_slots(wanted, now=now, using=using))


def _move(moves: Sequence[tuple[TimelineRun, Due]], *, now: datetime, using: str) -> None:
    """Give waiting runs another slot, as their schedule has changed. If that slot has a run already, they stay."""
    if not moves:
        return
    there = TimelineRun.objects.using(using).filter(entity_label="", entity_id="", once=True)
    asked = there.filter(timeline__in={run.timeline for run, _due in moves}, key__in={due.key for _run, due in moves})
    taken = {(timeline, key): run_id for timeline, key, run_id in asked.values_list("timeline", "key", "pk")}
    targets = {run.pk: due for run, due in moves if taken.get((run.timeline, due.key), run.pk) == run.pk}
    locked = lock_runs(targets, [NO_ENTITY], using=using)
    waiting = lock_waiting(locked.runs, using=using)
    for run in waiting:
        run.started_at, run.key = targets[run.pk]
    TimelineRun.objects.using(using).bulk_update(waiting, ["started_at", "key"])
    reconcile_locked(waiting, locked.entities, now=now, using=using, lenient=True)


def _pass_over(passed: Sequence[tuple[Definition, Passed, TimelineRun | None]], *, now: datetime, using: str) -> None:
    """
    Let one run with cancelled tasks stand for all slots that are passed over: the waiting run, or a new one. People are told.
    """
    new = [(known, Due(slots.last, slots.key)) for known, slots, run in passed if run is None]
    begun = {beginning.alike["timeline"]: beginning.id for beginning in begin_slots(new, now=now, using=using)}
    ranges: dict[tuple[datetime, datetime], list[UUID]] = defaultdict(list)
    for definition, slots, waits in passed:
        run_id = waits.pk if waits is not None else begun.get(definition.name)
        if run_id is not None:
            ranges[slots.first, slots.last].append(run_id)
    locked = lock_runs([pk for several in ranges.values() for pk in several], [NO_ENTITY], using=using)
    runs = {run.pk: run for run in lock_waiting(locked.runs, using=using)}  # A worker may have begun a run meanwhile.
    texts: dict[str, str] = {}
    for (first, last), run_ids in ranges.items():
        still = [runs[pk] for pk in run_ids if pk in runs]
        if not still:
            continue
        reason = SLOTS_PASSED(first=first, last=last)
        ids = dialect_of(using).list_of(run.pk.hex for run in still)
        call_off("runs", {"runs": ids}, reason=reason, now=now, using=using)
        end(still, RunEnd.FINISHED, now=now, using=using)
        texts |= dict.fromkeys((run.timeline for run in still), reason.text)
    alert_missed(texts, now=now, using=using)


def overlapping(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Reason | Behind]:
    """
    Attempts whose run is to be skipped, or to wait: id of the task → why, or for what. Two statements for first tasks; none for
    others. A decision holds for the whole run. If a first attempt was lost, the next one is checked. Only tasks of earlier runs
    that are under way or due count, so two runs never refuse each other, and a run moved far ahead holds up none.
    """
    asked = {attempt.task.id: attempt for attempt in attempts if _is_asked(attempt)}
    if not asked:
        return {}
    dialect, connection = dialect_of(using), connections[using]
    given = {
        "tasks": dialect.list_of(task_id.hex for task_id in asked),
        "now": connection.ops.adapt_datetimefield_value(now),
    }
    with connection.cursor() as cursor:
        cursor.execute(dialect.sql("overlapped"), given)
        found = {_as_uuid(task_id): (key, said) for task_id, key, said in cursor.fetchall()}
    clear(_runs_of(attempt for task_id, attempt in asked.items() if task_id not in found), using=using)
    return {task_id: _refused(asked[task_id], key, said) for task_id, (key, said) in found.items()}


def _is_asked(attempt: Attempt) -> bool:
    recurring = attempt.definition.recurring
    if recurring is None or recurring.overlap == "allow" or attempt.task.run is None:
        return False
    if attempt.declared.options.aside:  # Such as an alarm, which must come at its time.
        return False
    run = attempt.task.run
    return run.once and not run.is_cleared and not attempt.has_records


def _refused(attempt: Attempt, key: str, said: str) -> Reason | Behind:
    if said:
        return Reason(ReasonCode.OVERLAP, said)
    recurring = attempt.definition.recurring
    if recurring is not None and recurring.overlap == "queue":
        return Behind(timeline=attempt.definition.name, key=key)
    return OVERLAPS(run=key)


def _runs_of(attempts: Iterable[Attempt]) -> set[UUID]:
    return {attempt.task.run_id for attempt in attempts if attempt.task.run_id is not None}


def _as_uuid(key: UUID | str) -> UUID:
    return key if isinstance(key, UUID) else UUID(key)


def wake_queued(ended: Iterable[TimelineRun], *, now: datetime, using: str) -> int:
    """
    Make tasks due whose runs wait for one of these runs to end; give how many. The caller has the lock of system timelines.
    One statement, on SQLite three, for each run of the clock, if runs of its timeline wait for each other.
    """
    woken = 0
    for run in ended:
        known = registry.about(run.timeline, run.entity_label) if run.once else None
        if known is not None and known.recurring is not None and known.recurring.overlap == "queue":
            reason = ENDED_BEFORE(run=run.key)
            woken += wake_named(end_of(run.timeline), run.key, [NO_ENTITY], reason, now=now, using=using)
    return woken
