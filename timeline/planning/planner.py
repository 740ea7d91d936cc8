"""``plan``: decides task by task, predecessors first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, tzinfo
from operator import attrgetter
from typing import Any
from uuid import UUID

from timeline import reasons
from timeline.definition import Definition, Task
from timeline.features.machines.visits import is_of_unknown_state, is_wanted, leave_behind, wait_of
from timeline.hooks import rules
from timeline.lifecycle import OPEN, Reason, ReasonCode
from timeline.planning.answers import (
    LEFT_OPEN,
    TO_COME,
    Foreseen,
    Plan,
    Rows,
    TaskOutlook,
    TaskRow,
    Times,
    VisitPlace,
    cancel_open,
    end_aside,
    keep_open,
)
from timeline.planning.series import Series, at_later, is_number
from timeline.timing import Repeat, When, share_of


def plan(
    definition: Definition,
    *,
    started_at: datetime,
    anchors: Mapping[str, datetime | None],
    rows: Iterable[TaskRow],
    zone: tzinfo,
    now: datetime,
    spare: Collection[UUID] = (),
    dates: Mapping[str, date] | None = None,
    about: Sequence[str] = (),
    by_table: bool = False,
    place: VisitPlace | None = None,
    foresees: bool = True,
    cancels_undefined: bool = False,
) -> Plan:
    """
    Compare the rows that are wanted with the existing rows. Raises ``DateOutOfRange`` for a time outside 1970–9000.

    Args:
        anchors, dates: Field of the entity → its instant (None or missing: not set), and its day, if it is a date.
        zone: The zone whose wall clock counts calendar units.
        spare: Rows to leave as they are: the task that is running now.
        about: Label and id of the entity, and key of the run, which give each entity its own moment in a spread.
        by_table, place: Whether the run is a machine's, which ends only where its table says so; and its state, if it has one.
        foresees: Whether to give later follow-ups, too; the rows that are wanted now do not depend on it.
        cancels_undefined: Whether open rows of tasks that are gone are cancelled; otherwise they keep the run open.
    """
    facts, flags = (started_at, anchors, dates or {}, _latest(rows), zone, now), (foresees, cancels_undefined)
    return _Planner(definition, *facts, spare, about, by_table, place, *flags).plan()


def _latest(rows: Iterable[TaskRow]) -> dict[str, dict[str, TaskRow]]:
    """Name of a task → occurrence (empty if the task has only one) → its latest row."""
    latest: dict[str, dict[str, TaskRow]] = defaultdict(dict)
    for row in rows:
        of_task = latest[row.task_name]
        known = of_task.get(row.occurrence)
        if known is None or known.revision < row.revision:
            of_task[row.occurrence] = row
    return latest


@dataclass(slots=True)
class _Planner:
    """Decides task by task, predecessors first. Its arguments are those of ``plan``."""

    definition: Definition
    started_at: datetime
    anchors: Mapping[str, datetime | None]
    dates: Mapping[str, date]
    latest: dict[str, dict[str, TaskRow]]
    zone: tzinfo
    now: datetime
    spare: Collection[UUID]
    about: Sequence[str]
    by_table: bool
    place: VisitPlace | None
    foresees: bool
    cancels_undefined: bool
    result: Plan = field(default_factory=Plan)
    outlooks: dict[str, TaskOutlook] = field(default_factory=dict)
    answer: Rows = field(init=False)

    def __post_init__(self) -> None:
        self.answer = Rows(self.result, self.now)

    def plan(self) -> Plan:
        for name in self.definition.tasks:
            self.outlook(name)
        resting, repeated = False, self.definition.repeated
        for name, latest in self.latest.items():
            if len(latest) == 1 and "" in latest and name in self.outlooks and name not in repeated:
                continue  # The usual case: its only row is the one that was decided on.
            if name not in self.definition.tasks and not self.cancels_undefined:
                resting |= keep_open(self.rows(name), self.result)
            else:
                self.cancel_strays(name)
        self.result.open = (
            self.by_table
            or resting
            or any(outlook.to_come for name, outlook in self.outlooks.items() if name not in self.definition.aside)
        )
        if not self.result.open and self.definition.aside:
            end_aside(self.definition.aside, result=self.result, spare=self.spare)
        return self.result

    def cancel_strays(self, name: str) -> None:
        stray, spare = list[TaskRow](), self.spare
        if name in self.definition.repeated:
            stray = [row for row in self.rows(name) if not is_number(row.occurrence)]
        elif name not in self.definition.fanned_out and name not in self.definition.in_states:
            stray, spare = [row for row in self.rows(name) if row.occurrence or name not in self.outlooks], ()
            stray = [row for row in stray if not self.is_of_unknown_state(row)]
        if stray:
            cancel_open(stray, reasons.NO_LONGER_PLANNED(task=name), result=self.result, spare=spare)

    def outlook(self, name: str) -> TaskOutlook:
        if (known := self.outlooks.get(name)) is not None:
            return known
        declared = self.definition.tasks[name]
        if declared.when is None:
            return TaskOutlook(why_never=reasons.PREDECESSOR_UNPLANNED(task=name))
        known = self.outlooks[name] = self.decide(declared, declared.when)
        return known

    def rows(self, name: str) -> list[TaskRow]:
        """The latest row of each occurrence of a task, in their order."""
        rows = list(self.latest.get(name, {}).values())
        return rows if len(rows) < 2 else sorted(rows, key=attrgetter("occurrence"))

    def decide(self, declared: Task[Any, ..., Any], when: When) -> TaskOutlook:
        if when.is_for_each:
            return self.decide_each(declared, when)
        if when.during:
            return self.decide_in_state(declared, when)
        if when.repeats is not None:
            return self.decide_series(declared, when, when.repeats)
        return self.decide_once(declared, when)

    def decide_once(self, declared: Task[Any, ..., Any], when: When) -> TaskOutlook:
        row = self.latest.get(declared.name, {}).get("")
        if row is not None and row.id in self.spare and row.state in OPEN:
            return self.answer.keep(row, "it is being run")
        if when.predecessor_name:
            predecessor = self.outlook(when.predecessor_name)
            value = predecessor.since(when)
            if value is None:
                return self.without_row(declared, when, row, predecessor)
        else:
            value = self.anchors.get(when.field_name) if when.field_name else self.started_at
        if value is None:
            return self.answer.unanchored(when, row)
        times = self.times(declared, when, value)
        if declared.options.window is not None:
            times = self.due(declared, times)
        return self.answer.with_row(declared, times, row)

    def decide_each(self, declared: Task[Any, ..., Any], when: When) -> TaskOutlook:
        """The rows of an ``each_of`` task come from the outcome of the other task: the planner makes none by itself."""
        rows, predecessor = self.rows(declared.name), self.outlook(when.predecessor_name)
        if predecessor.completed_at is not None:
            times = self.times(declared, when, predecessor.completed_at)
            [keep] = rules().occurrences
            return keep(rows, times, result=self.result, now=self.now, spare=self.spare)
        reason = self.why_not_now(when, predecessor)
        spared = cancel_open(rows, reason, result=self.result, spare=self.spare)
        return spared[0] if spared else self.foresee(declared, when, predecessor)

    def decide_series(self, declared: Task[Any, ..., Any], when: When, repeats: Repeat) -> TaskOutlook:
        """A repeated task has one row at a time: the next is made when the one before it has ended."""
        first = self.times(declared, when, self.started_at)
        series = Series(self.latest.get(declared.name, {}), repeats, first.nominal_at, self.zone)
        standing = [self.answer.keep(row, "it was made again") for row in series.earlier if row.state in OPEN]
        row, number = series.last, max(series.number, 1)
        if row is not None and row.id in self.spare and row.state in OPEN:
            standing.append(self.answer.keep(row, "it is being run"))
        elif row is None:
            planned = self.due(declared, first)
            standing.append(self.answer.create(declared, planned, None, "it is planned by the timeline", "1"))
        elif row.state in OPEN or row.reason_code in LEFT_OPEN:
            times = self.due(declared, at_later(first, series.present()))
            standing.append(self.answer.with_row(declared, times, row))
        elif series.is_over:
            standing.append(self.answer.ended(row))
        else:
            times, number = self.due(declared, at_later(first, series.following())), series.number + 1
            standing.append(self.answer.create(declared, times, None, "the one before it has ended", str(number)))
        outlook = series.foresee(declared.name, number, standing, self.result)
        if (hours := declared.options.window) is not None:
            self.result.foreseen = [
                replace(known, expected_at=hours.shifted(known.expected_at, self.zone, self.now))
                if known.task_name == declared.name and known.expected_at
                else known
                for known in self.result.foreseen
            ]
        return outlook

    def decide_in_state(self, declared: Task[Any, ..., Any], when: When) -> TaskOutlook:
        """A task bound to a state of a machine has a row for each visit of the state, and no other open row."""
        latest, place = self.latest.get(declared.name, {}), self.place
        row = latest.get(place.occurrence) if place else None
        if row is not None and row.state in OPEN and self.is_of_unknown_state(row):
            self.answer.keep(row, "the table does not have the state of the run")
            row, place = None, None
        rows = [other for other in self.rows(declared.name) if not self.is_of_unknown_state(other)]
        if place is None or not is_wanted(when, place, row):
            leave_behind(rows, place, when, result=self.result, spare=self.spare)
            return TaskOutlook()
        others = [other for other in rows if other is not row]
        leave_behind(others, place, when, result=self.result, spare=self.spare)
        if row is not None and row.id in self.spare and row.state in OPEN:
            return self.answer.keep(row, "it is being run")
        value = self.anchors.get(when.field_name) if when.field_name else self.started_at
        value = place.since if when.states else value
        if value is None:
            return self.answer.unanchored(when, row)
        if when.backoff is not None and place.tries is None:
            return self.answer.stands(row)
        times = self.times(declared, when, value, when.anchor_in(place.state))
        if when.backoff is not None:
            times = at_later(times, times.nominal_at + wait_of(when.backoff, place, self.about))
        return self.answer.with_row(declared, self.due(declared, times), row, place.occurrence)

    def is_of_unknown_state(self, row: TaskRow) -> bool:
        """Whether a row is for a state that is not in our table, so that only an older or newer process knows it."""
        at, machine = self.place, self.definition.machine
        return at is not None and is_of_unknown_state(row.occurrence, at.occurrence, at.state, machine)

    def without_row(
        self, declared: Task[Any, ..., Any], when: When, row: TaskRow | None, predecessor: TaskOutlook
    ) -> TaskOutlook:
        """The predecessor has not completed: no open row; the task is foreseen, or never comes."""
        if row is not None and row.state in OPEN:
            self.answer.cancel(row, self.why_not_now(when, predecessor))
        elif row is not None and row.reason_code == ReasonCode.OPERATOR:
            called_off = reasons.PREDECESSOR_CALLED_OFF(task=declared.name)
            return TaskOutlook(ended_at=row.finished_at, why_never=called_off)
        return self.foresee(declared, when, predecessor)

    def why_not_now(self, when: When, predecessor: TaskOutlook) -> Reason:
        return reasons.RUNS_AGAIN_FIRST(task=when.predecessor_name) if predecessor.to_come else predecessor.why_never

    def foresee(self, declared: Task[Any, ..., Any], when: When, predecessor: TaskOutlook) -> TaskOutlook:
        if not predecessor.to_come:
            return TaskOutlook(why_never=predecessor.why_never)
        if not self.foresees:
            return TO_COME
        expected = predecessor.expected_at and when.resolve(predecessor.expected_at, self.zone)
        if expected and declared.options.window is not None:
            expected = declared.options.window.shifted(expected, self.zone, self.now)
        self.result.foreseen.append(
            Foreseen(task_name=declared.name, predecessor=when.predecessor_name, expected_at=expected)
        )
        return TaskOutlook(to_come=True, expected_at=expected)

    def times(self, declared: Task[Any, ..., Any], when: When, value: datetime, anchor: str | None = None) -> Times:
        nominal = when.resolve(value, self.zone)
        expires, spread = declared.options.expires, declared.options.spread
        scheduled_at = nominal + share_of(spread, *self.about, declared.name) if spread else nominal
        return Times(
            nominal_at=nominal,
            scheduled_at=scheduled_at,
            anchor=when.anchor if anchor is None else anchor,
            anchor_value=value,
            expires_at=None if expires is None else nominal + expires,
            anchor_date=self.dates.get(when.field_name),
            planned_at=scheduled_at,
        )

    def due(self, declared: Task[Any, ..., Any], times: Times) -> Times:
        """The times, shifted into the window of the task: it is due when the window opens, and a spread counts from then."""
        hours = declared.options.window
        if hours is None:
            return times
        opens = hours.shifted(times.nominal_at, self.zone, self.now)
        spread, due_at = declared.options.spread, opens
        if spread is not None:
            due_at = hours.spread_over(opens, times.scheduled_at - times.nominal_at, spread, self.zone)
        expires_at = times.expires_at
        if expires_at is not None and opens > times.nominal_at:
            expires_at += opens - times.nominal_at
        return replace(times, scheduled_at=due_at, expires_at=expires_at)
