"""Differ: find what reconciling all open runs would change, for example after a release with a new definition. No writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final
from uuid import UUID

from django.db.models import Count

from timeline.definition import Definition
from timeline.exceptions import InvalidInput
from timeline.features.plans.drift import open_runs, portions, rows_of_runs
from timeline.features.plans.drift_query import RunRef, in_doubt, open_rows, pages_of_open_runs
from timeline.lifecycle import Reason, ReasonCode, State
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import Entities
from timeline.models.facts import plan_of, tries_of
from timeline.planning import Cancel, Create, Keep, Move, PlannedChange
from timeline.registry import registry
from timeline.store.locks import RowToPlan
from timeline.store.returned_rows import read_entities

MOST: Final = 0.75  # If more of a timeline's runs are in doubt, it is faster to plan all without asking.
UNASKED: Final = 4  # For so many portions the database is not asked. Then it is asked again, as other runs may differ.

SIZE: Final = 2000  # How many runs are checked together.
PATIENCE: Final = 1.0  # About so many seconds a person should wait for the comparison of some runs.
SAMPLES: Final = 3  # How many samples are shown for each task.


class Sieve:
    """
    Finds the runs to plan, portion by portion.

    To ask the database takes a tenth of the time of planning; but after a release that changes all runs, it rules out none.
    """

    def __init__(self) -> None:
        self._unasked: dict[str, int] = {}

    def to_plan(self, refs: Sequence[RunRef], *, now: datetime, using: str) -> set[UUID]:
        """Open runs to plan: those in doubt, and all of timelines for which the database is not asked now."""
        several = Counter(ref.timeline for ref in refs)
        unasked = {name for name in several if self._unasked.get(name)}
        found = set(in_doubt((ref for ref in refs if ref.timeline not in unasked), now=now, using=using))
        doubtful = Counter(ref.timeline for ref in refs if ref.id in found)
        for name, number in several.items():
            if name in unasked:
                self._unasked[name] -= 1
            elif doubtful[name] > number * MOST:
                self._unasked[name] = UNASKED
        return found | {ref.id for ref in refs if ref.timeline in unasked}


@dataclass(frozen=True, slots=True)
class DriftSample:
    """A row that would change: its entity, its time before and after (None: no row), why, and the reason if the row exists."""

    entity: EntityRef
    at: datetime | None
    then_at: datetime | None
    why: str
    reason: Reason | None = None


@dataclass
class TaskDiffers:
    """
    What would happen to the rows of one task: how many, and how far they move at the least and at the most.

    Cancelled rows that are on their way are replaced by new ones; ``orphaned`` are those of a task that is declared no more.
    """

    new: int = 0
    moved: int = 0
    cancelled: int = 0
    orphaned: int = 0
    unchanged: int = 0
    earliest: timedelta | None = None
    latest: timedelta | None = None
    samples: list[DriftSample] = field(default_factory=list)

    def count(self, change: PlannedChange, run: TimelineRun) -> bool:
        """Count the change of a row of a run. Gives whether the row would change."""
        before: datetime | None = None
        then: datetime | None = None
        match change:
            case Keep():
                self.unchanged += change.row.finished_at is None
                return False
            case Create():
                self.new += 1
                then = change.times.scheduled_at
            case Move():
                self.moved += 1
                shift = change.times.scheduled_at - change.row.scheduled_at
                self.earliest = shift if self.earliest is None else min(self.earliest, shift)
                self.latest = shift if self.latest is None else max(self.latest, shift)
                before, then = change.row.scheduled_at, change.times.scheduled_at
            case Cancel():
                self.cancelled += 1
                self.orphaned += change.reason.code == ReasonCode.DEFINITION
                before = change.row.scheduled_at
        if len(self.samples) < SAMPLES:
            reason = None if isinstance(change, Create) else change.reason
            self.samples.append(DriftSample(run.entity_ref, before, then, change.why, reason))
        return True


@dataclass
class Differs:
    """
    How the rows of a timeline's open runs differ from what the timeline asks for now.

    ``ending``: runs that would end because no task is left; ``busy``: those with a task that is being run, whose outcome
    reconciles them; ``left``: why runs would be left as they are: sentence → how many.
    """

    timeline: str
    runs: int = 0
    changed: int = 0
    ending: int = 0
    busy: int = 0
    left: Counter[str] = field(default_factory=Counter)
    tasks: dict[str, TaskDiffers] = field(default_factory=dict)

    def task(self, name: str) -> TaskDiffers:
        """What would happen to the rows of a task."""
        if (known := self.tasks.get(name)) is None:
            known = self.tasks[name] = TaskDiffers()
        return known

    def as_data(self) -> dict[str, Any]:
        """The differences as JSON: times in ISO 8601, lengths in seconds."""
        return {
            "timeline": self.timeline,
            "runs": self.runs,
            "changed": self.changed,
            "ending": self.ending,
            "busy": self.busy,
            "left": dict(self.left),
            "tasks": {
                name: {
                    "new": task.new,
                    "moved": task.moved,
                    "cancelled": task.cancelled,
                    "orphaned": task.orphaned,
                    "unchanged": task.unchanged,
                    "earliest": None if task.earliest is None else task.earliest.total_seconds(),
                    "latest": None if task.latest is None else task.latest.total_seconds(),
                    "samples": [
                        {
                            "entity": str(sample.entity),
                            "at": sample.at and sample.at.isoformat(),
                            "then_at": sample.then_at and sample.then_at.isoformat(),
                            "why": sample.why,
                        }
                        for sample in task.samples
                    ],
                }
                for name, task in self.tasks.items()
            },
        }


def differences(definitions: Collection[Definition], *, now: datetime, using: str) -> Iterator[dict[str, Differs]]:
    """
    Compare open runs with their definitions and entities, in a few statements for two thousand runs, without locks.

    After each two thousand it gives what was found so far, by timeline: always the same object.
    """
    found, sieve = {definition.name: Differs(definition.name) for definition in definitions}, Sieve()
    for some in pages_of_open_runs(found, size=SIZE, using=using):
        _look(some, sieve.to_plan(some, now=now, using=using), found, now, using)
        yield found


def differences_of_some(
    definition: Definition, *, after: UUID | None, most: int, now: datetime, using: str
) -> tuple[Differs, UUID | None]:
    """
    Compare up to ``most`` open runs behind ``after``, the oldest first, without locks; also give the last, None: no more.

    First a quarter; the rest as well, unless that took so long that a person would wait for more than about a second.
    """
    found, give_up = {definition.name: Differs(definition.name)}, monotonic() + PATIENCE / 4
    some = next(pages_of_open_runs([definition.name], after=after, size=most + 1, using=using), [])
    looked, doubtful = most // 4, set(in_doubt(some[:most], now=now, using=using))
    runs = {run.pk: run for run in open_runs(doubtful, using=using)}
    facts = _Facts.read(list(runs.values()), using)

    def compare(refs: Sequence[RunRef]) -> None:
        _compare(facts, [runs[ref.id] for ref in refs if ref.id in runs], found, now)

    compare(some[:looked])
    if len(some) > looked and monotonic() <= give_up:
        compare(some[looked:most])
        looked = most
    _count_standing([ref for ref in some[:looked] if ref.id not in doubtful], found, using)
    return found[definition.name], some[looked - 1].id if len(some) > looked else None


def _look(refs: Sequence[RunRef], wanted: Set[UUID], found: dict[str, Differs], now: datetime, using: str) -> None:
    """Compare the wanted runs; the others would not change, as the database says, and are only counted."""
    _count_standing([ref for ref in refs if ref.id not in wanted], found, using)
    for keys in portions(sorted(wanted)):
        runs = open_runs(keys, using=using)
        _compare(_Facts.read(runs, using), runs, found, now)


def _count_standing(refs: Sequence[RunRef], found: Mapping[str, Differs], using: str) -> None:
    standing: dict[str, list[UUID]] = {}
    for ref in refs:
        if registry.about(ref.timeline, ref.label) is not None:
            standing.setdefault(ref.timeline, []).append(ref.id)
    for timeline, keys in standing.items():
        differs = found[timeline]
        differs.runs += len(keys)
        for name, number in open_rows(keys, registry.timeline(timeline), using=using).items():
            differs.task(name).unchanged += number


@dataclass(frozen=True, slots=True)
class _Facts:
    entities: Entities
    rows: Mapping[UUID, Sequence[RowToPlan]]
    tries: Mapping[UUID, int]

    @classmethod
    def read(cls, runs: Sequence[TimelineRun], using: str) -> _Facts:
        known = _known(runs)
        entities = read_entities((run.entity_ref for run, _definition in known), using=using)
        return cls(entities, rows_of_runs(known, using), tries_of(known, using=using))


def _known(runs: Sequence[TimelineRun]) -> list[tuple[TimelineRun, Definition]]:
    return [
        (run, definition) for run in runs if (definition := registry.about(run.timeline, run.entity_label)) is not None
    ]


def _compare(facts: _Facts, runs: Sequence[TimelineRun], found: dict[str, Differs], now: datetime) -> None:
    entities, rows, tries = facts.entities, facts.rows, facts.tries
    for run, definition in _known(runs):
        differs, ours = found[run.timeline], rows[run.pk]
        differs.runs += 1
        if any(row.state == State.ACTIVE for row in ours):
            differs.busy += 1
            continue
        entity = entities.get(ref := run.entity_ref)
        if entity is None and (unreadable := entities.unreadable.get(ref)):
            differs.left[unreadable.in_english()] += 1
            continue
        if definition.label and entity is None:
            differs.ending += 1
            differs.changed += 1
            continue
        try:
            planned = plan_of(
                run, definition, entity, ours, now=now, tries=tries, foresees=False, cancels_undefined=True
            )
        except InvalidInput as error:
            differs.left[error.in_english()] += 1
            continue
        is_changed = not planned.open
        differs.ending += is_changed
        for change in planned.changes:
            is_changed |= differs.task(_name_of(change)).count(change, run)
        differs.changed += is_changed


def _name_of(change: PlannedChange) -> str:
    return change.task_name if isinstance(change, Create) else change.row.task_name


def runs_of_nobody(*, using: str) -> dict[str, int]:
    """Names of timelines that this process does not declare → how many open runs they have. One statement."""
    runs = TimelineRun.objects.using(using).open().exclude(timeline__in=[definition.name for definition in registry])
    return dict(runs.order_by("timeline").values_list("timeline").annotate(count=Count("pk")))


def rows_of_nobody(*, using: str) -> dict[str, int]:
    """Task keys that this process does not declare → how many open rows they have. One statement."""
    rows = ScheduledTask.objects.using(using).open().of_nobody(registry.task_keys(), registry.elsewhere())
    return dict(rows.order_by("task_key").values_list("task_key").annotate(count=Count("pk")))
