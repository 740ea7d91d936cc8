"""What may be: each row as the last step left it, and what a step may make of it. It shares nothing with the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from tests.faults.seeing import Seen
from tests.faults.world import FOLLOW_UPS
from tests.testapp.models import Order
from timeline.models import TimelineRun

FINAL = {"completed", "discarded", "cancelled"}
WAITING = {"scheduled", "retryable"}
FROM_START = {"world.share": 2, "world.bulk": 2, "world.call": 3}  # Days after the start of the run.
ROOTS = {"world.ship", *FROM_START}
MOVING = {"world.ship", "world.mail"}  # What hangs on a date that may change, and on a task that may run again.
GIVEN_UP_FOR = {"superseded", "predecessor"}  # Reasons for which a plan calls a row off.
MAX_FAILURES, MAX_LOST = 5, 3
DELAY, JITTER = timedelta(seconds=15), 1.2  # After the first failure; each further one is twice as long.

Way = dict[str, Any]  # Column → what it has become, or a function that says whether that may be.


class Row(NamedTuple):
    """A task as the table has it."""

    pk: UUID
    run_id: UUID | None
    entity_id: str
    task_key: str
    occurrence: str
    revision: int
    state: str
    scheduled_at: datetime
    anchor_value: datetime | None
    attempt: int
    failures: int
    lost: int
    claim_token: UUID | None
    reason_code: str
    finished_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state not in FINAL

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.task_key} {self.pk} ({self.revision})"


class Run(NamedTuple):
    """A run as the table has it."""

    pk: UUID
    entity_id: str
    started_at: datetime
    ended_at: datetime | None
    end_reason: str


_columns_of_row = attrgetter("id", *Row._fields[1:])
_columns_of_run = attrgetter("id", *Run._fields[1:])
STAYS = ("state", "scheduled_at", "attempt", "failures", "lost", "finished_at")  # Of a row that nothing was said of.


class Model:
    """
    What there is, and what the step that is being made may make of it.

    ``said``: id of a task → the ways in which it may go; a row of which nothing is said stays as it is. ``touched``: runs that
    are planned anew in this step: rows that hang on a date or on another task may be called off, moved and made again.
    ``exited``: runs that an exit has ended. ``closed``: these, and the runs that were finished when it came.
    """

    def __init__(self) -> None:
        self.rows: dict[UUID, Row] = {}
        self.runs: dict[UUID, Run] = {}
        self.exited: set[UUID] = set()
        self.closed: set[UUID] = set()
        self.forget()

    def forget(self) -> None:
        """Say nothing of the next step."""
        self.said: dict[UUID, list[Way]] = {}
        self.touched: set[UUID] = set()
        self.starts: set[str] = set()
        self.gone: tuple[set[UUID], set[UUID]] = (set(), set())

    def expect(self, pk: UUID, *ways: Way) -> None:
        """Say what becomes of a row, old or new: one of these ways."""
        self.said[pk] = list(ways)

    def touch(self, rows: Iterable[Row]) -> None:
        """Say that the runs of these rows are planned anew."""
        self.touched |= {row.run_id for row in rows if row.run_id is not None}

    def open_run(self, entity_id: str) -> Run | None:
        """The run of an entity that has not ended."""
        found = [run for run in self.runs.values() if run.entity_id == entity_id and run.ended_at is None]
        return found[0] if found else None

    def same(self, row: Row) -> list[Row]:
        """All revisions of a task, the latest last."""
        alike = [
            other
            for other in self.rows.values()
            if (other.run_id, other.entity_id, other.task_key, other.occurrence)
            == (row.run_id, row.entity_id, row.task_key, row.occurrence)
        ]
        return sorted(alike, key=lambda other: other.revision)

    def compare(self, now: datetime, seen: Seen) -> None:
        """See that the tables are as was said, and go on from there. ``now``: story time."""
        rows = {row.id: Row._make(_columns_of_row(row)) for row in seen.tasks()}
        runs = {run.id: Run._make(_columns_of_run(run)) for run in seen.of(TimelineRun, timeline="world")}
        dates = {str(order.id): order.ships_at for order in seen[Order]}
        assert self.rows.keys() - rows.keys() == self.gone[0], "other tasks are gone than should be"
        assert self.runs.keys() - runs.keys() == self.gone[1], "other runs are gone than should be"
        for pk, row in rows.items():
            if pk in self.rows:
                self._compare_old(self.rows[pk], row, dates)
            else:
                self._compare_new(row, runs, rows, dates, now)
            early = row.state in {"available", "pending", "active"} and row.scheduled_at > now
            assert not early, f"{row.name} is {row.state} before its time"
        self._compare_runs(rows, runs)
        self.rows, self.runs = rows, runs
        self.forget()

    def _compare_old(self, old: Row, row: Row, dates: dict[str, datetime]) -> None:
        ways = self.said.get(old.pk, [{}])
        if old.run_id in self.touched and old.task_key in MOVING:
            if old.is_open:
                ways = [*ways, {"state": "cancelled", "reason_code": GIVEN_UP_FOR.__contains__}]
            if old.state in WAITING and old.task_key == "world.ship":
                ways = [*ways, {"scheduled_at": later(old, dates[old.entity_id]), "anchor_value": dates[old.entity_id]}]
        assert any(fits(old, way, row) for way in ways), f"{old} has become {row}, which is none of {ways}"

    def _compare_new(
        self, row: Row, runs: dict[UUID, Run], rows: dict[UUID, Row], dates: dict[str, datetime], now: datetime
    ) -> None:
        """Nobody has tried it; it is one that was said, or that a plan makes, at the time that gives."""
        assert (row.attempt, row.failures, row.lost) == (0, 0, 0), row.name
        ways = self.said.get(row.pk)
        if ways is None:
            assert row.run_id in self.touched or row.entity_id in self.starts, f"{row.name} was made for nothing"
            assert not row.occurrence, f"{row.name} is an occurrence of its own"
            due = times(row, runs, rows, dates)
            assert row.scheduled_at in due, f"{row.name} is due at {row.scheduled_at}, not at {due}"
            ways = [{"state": "scheduled" if row.scheduled_at > now else "available"}]
        if row.run_id in self.touched and row.task_key in MOVING:
            ways = [*ways, {"state": "cancelled", "reason_code": GIVEN_UP_FOR.__contains__}]
        assert any(fits(None, way, row) for way in ways), f"{row} is none of {ways}"

    def _compare_runs(self, rows: dict[UUID, Row], runs: dict[UUID, Run]) -> None:
        """A run has its tasks from its start on, and ends by an exit, or when none is open: then at once."""
        for pk, run in runs.items():
            if pk not in self.runs:
                assert run.entity_id in self.starts, f"run {pk} began for nothing"
            tasks = [row for row in rows.values() if row.run_id == pk]
            keys = {row.task_key for row in tasks}
            assert keys - set(FOLLOW_UPS["world.ship"]) == ROOTS, f"run {pk} has {sorted(keys)}"
            finished = "" if any(row.is_open for row in tasks) else "finished"
            wanted = "closed" if pk in self.exited else finished
            assert run.end_reason == wanted, f"run {pk} ended as {run.end_reason!r}, not {wanted!r}"


def fits(old: Row | None, way: Way, row: Row) -> bool:
    """Whether a row has gone this way; what the way leaves out is as it was, but for when it ended, if it has."""
    wanted: Way = {name: getattr(old, name) for name in STAYS} if old else {}
    if old and "state" in way and old.is_open and way["state"] in FINAL:
        del wanted["finished_at"]
    wanted |= way
    return all(
        value(getattr(row, name)) if callable(value) else getattr(row, name) == value for name, value in wanted.items()
    )


def later(row: Row, at: datetime) -> datetime:
    """When a waiting row is due whose date moves: one that failed keeps its delay."""
    return max(at, row.scheduled_at) if row.state == "retryable" else at


def times(row: Row, runs: dict[UUID, Run], rows: dict[UUID, Row], dates: dict[str, datetime]) -> set[datetime]:
    """When a row that a plan made may be due."""
    if row.task_key in FROM_START:
        return {runs[row.run_id].started_at + timedelta(days=FROM_START[row.task_key])}
    if row.task_key == "world.ship":
        return {dates[row.entity_id]}
    shipped = [other for other in rows.values() if (other.run_id, other.task_key) == (row.run_id, "world.ship")]
    latest = max(shipped, key=lambda other: other.revision)
    return {latest.finished_at + timedelta(days=1)} if latest.state == "completed" else set()


def between(first: datetime, last: datetime) -> Callable[[datetime], bool]:
    """Whether a time is not before, nor after."""
    return lambda at: first <= at <= last


def failed(row: Row, now: datetime, *, counted: bool = True) -> Way:
    """What becomes of a row whose attempt fails: it waits, twice as long each time; or it is the last one."""
    failures = row.failures + counted
    tried: Way = {"attempt": row.attempt + (row.state != "active"), "failures": failures}
    if counted and failures >= MAX_FAILURES:
        return tried | {"state": "discarded", "reason_code": "error"}
    delay = DELAY * 2 ** (max(failures, 1) - 1)
    return tried | {"state": "retryable", "scheduled_at": between(now + delay, now + delay * JITTER)}


def lost(row: Row, now: datetime) -> Way:
    """What becomes of a row whose worker is not heard of: each loss counts, but for that of a first attempt."""
    losses = row.lost + (row.attempt > 1)
    if losses >= MAX_LOST:
        return {"state": "discarded", "lost": losses, "reason_code": "worker_lost"}
    return {"state": "retryable", "lost": losses, "scheduled_at": now}
