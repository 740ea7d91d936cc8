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
from timeline.lifecycle import Reason, ReasonCode, State
from timeline.models import EntityRef, TimelineRun
from timeline.models.entities import Entities
from timeline.models.facts import plan_of
from timeline.models.visits import tries_of
from timeline.operations._drifting import open_runs, portions, rows_of_runs
from timeline.operations._sieving import Sieve
from timeline.planning import Cancel, Create, Keep, Move, PlannedChange
from timeline.registry import registry
from timeline.store.returning import read_entities
from timeline.store.rows_to_plan import RowToPlan
from timeline.store.standing import RunRef, in_doubt, open_rows, pages_of_open_runs

SIZE: Final = 2000  # How many runs are checked together.
PATIENCE: Final = 1.0  # About so many seconds a person should wait for the comparison of some runs.
SAMPLES: Final = 3  # How many samples are shown for each task.


@dataclass(frozen=True, slots=True)
class Sample:
    """A row that would change: its entity, its time before and after (None: no row), why, and the reason if the row exists."""

    entity: EntityRef
    at: datetime | None
    then_at: datetime | None
    why: str
    reason: Reason | None = None


@dataclass
class TaskDiffers:
    """
    What would happen to the rows of one task.

    Args:
        new: How many rows would be made.
        moved: How many would get another time.
        cancelled: How many would be cancelled; rows that are on their way are replaced by new ones.
        orphaned: How many of the cancelled rows are of a task that the timeline does not have any more.
        unchanged: How many open rows would stay as they are.
        earliest, latest: The smallest and the largest difference of the moved rows.
        samples: A few of the rows that would change.
    """

    new: int = 0
    moved: int = 0
    cancelled: int = 0
    orphaned: int = 0
    unchanged: int = 0
    earliest: timedelta | None = None
    latest: timedelta | None = None
    samples: list[Sample] = field(default_factory=list)

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
            self.samples.append(Sample(run.entity_ref, before, then, change.why, reason))
        return True


@dataclass
class Differs:
    """
    How the rows of a timeline's open runs differ from what the timeline asks for now.

    Args:
        timeline: Its name.
        runs: How many runs were checked.
        changed: How many of them would be changed.
        ending: How many would end because no task is left.
        busy: How many have a task that is being run, whose outcome reconciles them.
        left: Why runs would be left as they are: sentence → how many.
        tasks: Name of a task → what would happen to its rows.
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
    Compare open runs with their definitions and their entities as they are now. A few statements for two thousand runs, and no
    locks.

    Args:
        definitions: The timelines.
        now: Story time.
        using: Database alias.

    Returns:
        After each two thousand runs, what was found so far: name of a timeline → how it differs. It is always the same object.
    """
    found, sieve = {definition.name: Differs(definition.name) for definition in definitions}, Sieve()
    for some in pages_of_open_runs(found, size=SIZE, using=using):
        _look(some, sieve.to_plan(some, now=now, using=using), found, now, using)
        yield found


def differences_of_some(
    definition: Definition, *, after: UUID | None, most: int, now: datetime, using: str
) -> tuple[Differs, UUID | None]:
    """
    Compare some of a timeline's open runs, the oldest first, without locks. First a quarter of them is compared. The rest is
    compared, too, unless that quarter took so long that a person would wait for more than about a second.

    Args:
        definition: The timeline.
        after: The last run that was compared before; None: begin with the first.
        most: How many runs to compare at most.
        now: Story time.
        using: Database alias.

    Returns:
        What was found; and the last run that was compared, None if no other is left.
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
    """Compare the wanted runs. The database says that the others would not change, so they are only counted."""
    _count_standing([ref for ref in refs if ref.id not in wanted], found, using)
    for keys in portions(sorted(wanted)):
        runs = open_runs(keys, using=using)
        _compare(_Facts.read(runs, using), runs, found, now)


def _count_standing(refs: Sequence[RunRef], found: Mapping[str, Differs], using: str) -> None:
    """Count runs that would not change."""
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
    """The data from which runs are planned: four statements at most, for any number of runs."""

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
            planned = plan_of(run, definition, entity, ours, now=now, tries=tries, foresees=False)
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
