"""Facts that tests of planning start from, and what they make of the answer."""

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

from timeline.definition import Timeline, task
from timeline.lifecycle import FINAL, OPEN, WAITING, ReasonCode, State
from timeline.planning import Cancel, Create, Move, plan
from timeline.timing import after, at, before

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
START = NOW
ENDS = NOW + timedelta(days=30)
DAY = timedelta(days=1)

OPEN_IN_ORDER = [state for state in State if state in OPEN]
DUE = sorted(OPEN - WAITING)
UNSUCCESSFUL = sorted(FINAL - {State.COMPLETED})
LEFT_OPEN = [ReasonCode.SUPERSEDED, ReasonCode.DEFINITION, ReasonCode.PREDECESSOR, ReasonCode.RUN_ENDED]
SAID_SOMETHING = sorted(set(ReasonCode) - {*LEFT_OPEN, ReasonCode.OPERATOR})


class Trial(Timeline):
    """Anchored to start and field, with a chain of follow-ups behind the field's end."""

    entity = "testapp.Order"

    @task(after(days=1))
    def welcome(self, order):
        return None

    @task(before("ends_at", days=5))
    def remind(self, order):
        return None

    @task(at("ends_at"), expires=timedelta(days=7))
    def expire(self, order):
        return None

    @task(after(expire, days=2))
    def check(self, order):
        return None

    @task(after(check, hours=6), expires=timedelta(hours=1))
    def close(self, order):
        return None

    @task()
    def on_demand(self, order):
        return None


class OneField(Timeline):
    entity = "testapp.Order"

    @task(at("ends_at"))
    def expire(self, order):
        return None


class TwoSteps(OneField):
    @task(after(OneField.expire, days=2))
    def check(self, order):
        return None


class OneStart(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def welcome(self, order):
        return None


@dataclass
class Row:
    """As much of a task's row as the diff reads, and what a test tells it by."""

    task_name: str
    state: str = State.SCHEDULED
    revision: int = 1
    nominal_at: datetime = ENDS
    scheduled_at: datetime | None = None
    anchor_value: datetime | None = ENDS
    finished_at: datetime | None = None
    reason_code: str = ""
    id: UUID = field(default_factory=uuid4)
    previous: UUID | None = None
    anchor_date: date | None = None
    planned_at: datetime | None = None
    occurrence: str = ""
    anchor: str = ""

    def __post_init__(self):
        self.scheduled_at = self.scheduled_at or self.nominal_at
        if self.state in FINAL:
            self.finished_at = self.finished_at or NOW
            self.reason_code = self.reason_code or (
                ReasonCode.DONE if self.state == State.COMPLETED else ReasonCode.ERROR
            )


def plan_of(
    definition,
    rows=(),
    *,
    ends_at=ENDS,
    started_at=START,
    now=NOW,
    zone=UTC,
    spare=(),
    dates=None,
    foresees=True,
    cancels_undefined=False,
):
    return plan(
        definition.definition,
        started_at=started_at,
        anchors={"ends_at": ends_at},
        rows=rows,
        zone=zone,
        now=now,
        spare=spare,
        dates=dates,
        foresees=foresees,
        cancels_undefined=cancels_undefined,
    )


def carry_out(planned, rows, *, now=NOW):
    """Give back the rows as the plan wants them."""
    after_it = {row.id: row for row in rows}
    for change in planned.changes:
        match change:
            case Create(task_name=name, times=times, revision=revision, previous=previous):
                made = Row(
                    name,
                    State.SCHEDULED if times.scheduled_at > now else State.AVAILABLE,
                    revision,
                    times.nominal_at,
                    times.scheduled_at,
                    times.anchor_value,
                    previous=previous,
                    anchor_date=times.anchor_date,
                )
                after_it[made.id] = made
            case Move(row=row, times=times):
                after_it[row.id] = replace(
                    row,
                    nominal_at=times.nominal_at,
                    scheduled_at=times.scheduled_at,
                    anchor_value=times.anchor_value,
                    anchor_date=times.anchor_date,
                )
            case Cancel(row=row, reason=reason):
                after_it[row.id] = replace(row, state=State.CANCELLED, finished_at=now, reason_code=reason.code)
    return list(after_it.values())


def summary(planned):
    """Each change as (kind, task, reason of a cancellation)."""
    return [
        (
            type(change).__name__.lower(),
            change.task_name if isinstance(change, Create) else change.row.task_name,
            *([change.reason.code] if isinstance(change, Cancel) else []),
        )
        for change in planned.changes
    ]


def of_kind(planned, kind):
    return [change for change in planned.changes if isinstance(change, kind)]
