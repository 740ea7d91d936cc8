"""How many tasks of each kind are open, overdue, failed or cancelled, how many runs there are, and how the last ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from django.db.models import Count
from django.utils.formats import number_format

from timeline.conf import get_settings
from timeline.definition import Definition
from timeline.lifecycle import OPEN, ReasonCode, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.store.bounded_counts import DETAIL, KIND, Counts, Pairs, counts_of, first_of_each

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet

MAX_COUNTED: Final = 1_000  # For a kind of task in a state, or the runs of a timeline. “1,000+” says enough.
LATELY: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Amount:
    """A count, and whether there are more."""

    count: int = 0
    is_more: bool = False

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.count + other.count, self.is_more or other.is_more)

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        return number_format(self.count, force_grouping=True) + ("+" if self.is_more else "")


@dataclass(frozen=True, slots=True)
class TaskTally:
    """Numbers of one kind of task: ``failed`` in the last 7 days of story time; ``cancelled`` by reason code."""

    open: Amount = Amount()
    overdue: Amount = Amount()
    failed: Amount = Amount()
    cancelled: Mapping[str, Amount] = field(default_factory=dict)

    @property
    def all_cancelled(self) -> Amount:
        """Cancelled for any reason."""
        return sum(self.cancelled.values(), Amount())


@dataclass(frozen=True, slots=True)
class RunTally:
    """How many runs of a timeline are open, and how many started and ended in the last 7 days of story time."""

    open: Amount = Amount()
    started: Amount = Amount()
    ended: Amount = Amount()


@dataclass(frozen=True, slots=True)
class Tallies:
    """Counts by task key, of runs and orphans by timeline, if asked for; of one machine by state as well."""

    tasks: Mapping[str, TaskTally]
    runs: Mapping[str, RunTally]
    states: Mapping[str, Amount] = field(default_factory=dict)
    orphans: Mapping[str, Amount] = field(default_factory=dict)

    def of(self, definition: Definition) -> TaskTally:
        """All tasks of a timeline together, without the reasons of cancelled ones."""
        known = [self.tasks[definition.task_key(name)] for name in definition.tasks]
        return TaskTally(
            open=sum((each.open for each in known), Amount()),
            overdue=sum((each.overdue for each in known), Amount()),
            failed=sum((each.failed for each in known), Amount()),
        )


def tallies(
    definitions: Iterable[Definition],
    tasks: ScheduledTaskQuerySet,
    *,
    reasons: bool,
    runs: bool,
    orphans: Iterable[str] = (),
    now: datetime,
) -> Tallies:
    """
    Count tasks and runs in one statement, up to ``MAX_COUNTED`` of each; ``reasons``: cancelled ones by reason, too.

    ``orphans``: keys that rows have and the code has not; their open tasks are counted by timeline.
    """
    known = list(definitions)
    keys = [definition.task_key(name) for definition in known for name in definition.tasks]
    names = [definition.name for definition in known]
    states = list(known[0].states) if runs and len(known) == 1 else []
    asks = _of_tasks(tasks, keys, now) + (_of_reasons(tasks, keys) if reasons else [])
    asks += _of_runs(tasks.db, names, now) if runs else []
    asks += _of_states(tasks.db, names[0], states) if states else []
    left = [(key, state) for key in orphans for state in sorted(OPEN)]
    asks += [Pairs("orphans", _alike(tasks).filter(state=DETAIL), left)] if left else []
    counts = counts_of(asks, most=MAX_COUNTED, using=tasks.db)
    return Tallies(
        tasks={key: _task_tally(key, counts) for key in keys},
        runs={name: _run_tally(name, counts) for name in names} if runs else {},
        states={state: _amount(counts.get(("state", names[0], state), 0)) for state in states},
        orphans=_by_timeline(left, counts),
    )


def run_counts(names: Iterable[str], *, using: str) -> dict[str, Amount]:
    """Name of a timeline → how many open runs it has, up to ``MAX_COUNTED``. One statement."""
    known = list(names)
    still = TimelineRun.objects.using(using).of_timeline(KIND).still()
    counts = counts_of([Pairs("runs", still, [(name, "") for name in known])], most=MAX_COUNTED, using=using)
    return {name: _amount(counts.get(("runs", name, ""), 0)) for name in known}


def _of_tasks(tasks: ScheduledTaskQuerySet, keys: list[str], now: datetime) -> list[Pairs]:
    alike = _alike(tasks)
    waiting = [(key, state) for key in keys for state in sorted(OPEN)]
    unstarted = [(key, state) for key, state in waiting if state != State.ACTIVE]
    late = now - get_settings().overdue_after
    failed = tasks.filter(state=State.DISCARDED, task_key=KIND, finished_at__gt=now - LATELY).order_by("finished_at")
    return [
        Pairs("open", alike.filter(state=DETAIL), waiting),
        Pairs("overdue", alike.filter(state=DETAIL, scheduled_at__lte=late), unstarted),
        Pairs("failed", failed, [(key, "") for key in keys]),
    ]


def _alike(tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
    return tasks.filter(task_key=KIND).order_by("scheduled_at")


def _by_timeline(left: Iterable[tuple[str, str]], counts: Counts) -> dict[str, Amount]:
    """The counts of orphans of each timeline that has some."""
    found = dict[str, Amount]()
    for key, state in left:
        if count := counts.get(("orphans", key, state), 0):
            name = key.partition(".")[0]
            found[name] = found.get(name, Amount()) + _amount(count)
    return found


def _of_reasons(tasks: ScheduledTaskQuerySet, keys: list[str]) -> list[Pairs]:
    cancelled = tasks.filter(state=State.CANCELLED, reason_code=DETAIL, task_key=KIND).order_by("scheduled_at")
    return [Pairs("cancelled", cancelled, [(key, code.value) for key in keys for code in ReasonCode])]


def _of_runs(using: str, names: list[str], now: datetime) -> list[Pairs]:
    """A run that began and ended lately is counted among those that ended. All queries use the order of the index."""
    runs = TimelineRun.objects.using(using).of_timeline(KIND)
    since, pairs = now - LATELY, [(name, "") for name in names]
    ended, still = runs.ended_since(since), runs.still()
    return [
        Pairs("runs", still, pairs),
        Pairs("ended", ended, pairs),
        Pairs("started", still.filter(started_at__gt=since, started_at__lte=now), pairs),
        Pairs("started and ended", ended.filter(started_at__gt=since), pairs),
    ]


def _of_states(using: str, name: str, states: list[str]) -> list[Pairs]:
    runs = TimelineRun.objects.using(using).open().filter(timeline=KIND, state=DETAIL, state__gt="")
    return [Pairs("state", runs.order_by("state_at"), [(name, state) for state in states])]


def _task_tally(key: str, counts: Counts) -> TaskTally:
    by_reason = {code.value: _amount(counts.get(("cancelled", key, code.value), 0)) for code in ReasonCode}
    return TaskTally(
        open=_sum("open", key, OPEN, counts),
        overdue=_sum("overdue", key, OPEN, counts),
        failed=_amount(counts.get(("failed", key, ""), 0)),
        cancelled={code: amount for code, amount in by_reason.items() if amount},
    )


def _run_tally(name: str, counts: Counts) -> RunTally:
    told = {
        kind: _amount(counts.get((kind, name, ""), 0)) for kind in ("runs", "ended", "started", "started and ended")
    }
    return RunTally(told["runs"], told["started"] + told["started and ended"], told["ended"])


def _sum(kind: str, key: str, states: Iterable[str], counts: Counts) -> Amount:
    return sum((_amount(counts.get((kind, key, state), 0)) for state in states), Amount())


def _amount(count: int) -> Amount:
    return Amount(min(count, MAX_COUNTED), count > MAX_COUNTED)


class LastRun(NamedTuple):
    """The run of a timeline that has ended last, and how many of its tasks have failed and were not redriven."""

    run: TimelineRun
    failed: int


def last_runs(timelines: Sequence[str], *, using: str) -> dict[str, LastRun]:
    """Name of a timeline → its last run; those of which no run has ended are left out. Two statements at most."""
    runs = first_of_each(TimelineRun.objects.using(using).of_timeline(KIND).last_ended(), timelines)
    dead = ScheduledTask.objects.using(using).dead_letters().filter(run__in=[run.pk for run in runs]).order_by()
    failed = dict(dead.values_list("run").annotate(Count("pk"))) if runs else {}
    return {run.timeline: LastRun(run, failed.get(run.pk, 0)) for run in runs}
