"""The pure diff: situations and the answer to each."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest

from timeline.definition import Timeline, task
from timeline.exceptions import DateOutOfRange
from timeline.lifecycle import FINAL, LEASED, OPEN, WAITING, ReasonCode, State
from timeline.planning import Cancel, Create, Foreseen, Keep, Move, plan
from timeline.timing import after, at, before

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
START = NOW
ENDS = NOW + timedelta(days=30)
DAY = timedelta(days=1)

OPEN_IN_ORDER = [state for state in State if state in OPEN]
DUE = sorted(OPEN - WAITING)
UNSUCCESSFUL = sorted(FINAL - {State.COMPLETED})
LEFT_OPEN = [ReasonCode.SUPERSEDED, ReasonCode.DEFINITION, ReasonCode.PREDECESSOR]
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

    def __post_init__(self):
        self.scheduled_at = self.scheduled_at or self.nominal_at
        if self.state in FINAL:
            self.finished_at = self.finished_at or NOW
            self.reason_code = self.reason_code or (
                ReasonCode.DONE if self.state == State.COMPLETED else ReasonCode.ERROR
            )


def plan_of(definition, rows=(), *, ends_at=ENDS, started_at=START, now=NOW, zone=UTC, spare=()):
    return plan(
        definition.definition,
        started_at=started_at,
        anchors={"ends_at": ends_at},
        rows=rows,
        zone=zone,
        now=now,
        spare=spare,
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
                )
                after_it[made.id] = made
            case Move(row=row, times=times):
                after_it[row.id] = replace(
                    row,
                    nominal_at=times.nominal_at,
                    scheduled_at=times.scheduled_at,
                    anchor_value=times.anchor_value,
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


class TestFreshRun:
    def test_creates_what_counts_from_the_start_and_from_fields(self):
        planned = plan_of(Trial)

        assert summary(planned) == [("create", "welcome"), ("create", "remind"), ("create", "expire")]
        assert [change.times.nominal_at for change in planned.changes] == [START + DAY, ENDS - 5 * DAY, ENDS]

    def test_creates_first_revisions(self):
        created = plan_of(Trial).changes

        assert {(change.revision, change.previous) for change in created} == {(1, None)}
        assert all(change.why for change in created)

    def test_remembers_what_each_time_was_computed_from(self):
        [welcome, remind, expire] = [change.times for change in plan_of(Trial).changes]

        assert (welcome.anchor, welcome.anchor_value) == ("start", START)
        assert (remind.anchor, remind.anchor_value) == ("field:ends_at", ENDS)
        assert expire.scheduled_at == expire.nominal_at

    def test_foresees_follow_ups_through_the_whole_chain_and_creates_none(self):
        planned = plan_of(Trial)

        assert planned.foreseen == [
            Foreseen(task_name="check", predecessor="expire", expected_at=ENDS + 2 * DAY),
            Foreseen(task_name="close", predecessor="check", expected_at=ENDS + 2 * DAY + timedelta(hours=6)),
        ]
        assert not {"check", "close"} & {change.task_name for change in planned.changes}

    def test_expects_follow_ups_of_what_is_overdue_from_now_on(self):
        planned = plan_of(Trial, ends_at=NOW - 3 * DAY)

        assert planned.foreseen[0].expected_at == NOW + 2 * DAY

    def test_leaves_a_task_without_schedule_to_the_caller(self):
        planned = plan_of(Trial)

        assert "on_demand" not in [change.task_name for change in planned.changes]
        assert "on_demand" not in [item.task_name for item in planned.foreseen]

    def test_creates_what_is_in_the_past_too(self):
        [created] = plan_of(OneField, ends_at=NOW - DAY).changes

        assert created.times.scheduled_at == NOW - DAY

    def test_counts_days_on_the_wall_clock_of_the_zone(self):
        [created] = plan_of(
            OneStart, started_at=datetime(2026, 3, 28, 9, tzinfo=UTC), zone=ZoneInfo("Europe/Berlin")
        ).changes

        assert created.times.nominal_at == datetime(2026, 3, 29, 8, tzinfo=UTC)

    def test_lets_a_task_expire_from_its_nominal_time_where_it_does(self):
        [welcome, _remind, expire] = [change.times for change in plan_of(Trial).changes]

        assert welcome.expires_at is None
        assert expire.expires_at == ENDS + timedelta(days=7)

    def test_waits_for_a_field_that_is_not_set(self):
        planned = plan_of(Trial, ends_at=None)

        assert summary(planned) == [("create", "welcome")]
        assert planned.open

    def test_foresees_without_a_time_what_follows_a_task_that_waits(self):
        planned = plan_of(Trial, ends_at=None)

        assert [(item.task_name, item.expected_at) for item in planned.foreseen] == [("check", None), ("close", None)]

    def test_does_not_tell_a_missing_field_from_one_that_is_not_set(self):
        planned = plan(OneField.definition, started_at=START, anchors={}, rows=[], zone=UTC, now=NOW)

        assert planned == plan_of(OneField, ends_at=None)

    def test_refuses_a_time_out_of_range_and_names_the_anchor(self):
        with pytest.raises(DateOutOfRange) as caught:
            plan_of(Trial, ends_at=datetime(1970, 1, 2, tzinfo=UTC))

        assert caught.value.field == "ends_at"


class TestSecondLook:
    def test_keeps_all_rows_of_the_first(self):
        first = plan_of(Trial)
        rows = carry_out(first, [])

        second = plan_of(Trial, rows)

        assert summary(second) == [("keep", "welcome"), ("keep", "remind"), ("keep", "expire")]
        assert (second.foreseen, second.open) == (first.foreseen, True)

    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_keeps_a_row_however_far_it_came(self, state):
        row = Row("expire", state)

        assert plan_of(OneField, [row]).changes == [Keep(row=row, why="its time stands")]

    def test_keeps_a_row_that_an_operator_moved(self):
        """Its due time is another, its nominal time the same."""
        row = Row("expire", scheduled_at=ENDS + 9 * DAY)

        planned = plan_of(TwoSteps, [row])

        assert summary(planned) == [("keep", "expire")]
        assert planned.foreseen[0].expected_at == ENDS + 11 * DAY

    def test_looks_at_the_latest_revision_only(self):
        rows = [
            Row("expire", revision=2),
            Row("expire", State.CANCELLED, revision=1, reason_code=ReasonCode.MOVED),
        ]

        for order in (rows, rows[::-1]):
            assert plan_of(OneField, order).changes == [Keep(row=rows[0], why="its time stands")]

    def test_expects_a_follow_up_of_an_overdue_row_from_now_on(self):
        row = Row("expire", State.PENDING, nominal_at=NOW - DAY, anchor_value=NOW - DAY)

        [follow_up] = plan_of(TwoSteps, [row], ends_at=NOW - DAY).foreseen

        assert follow_up.expected_at == NOW + 2 * DAY


class TestAnchorMoved:
    @pytest.mark.parametrize("state", sorted(WAITING))
    @pytest.mark.parametrize("by", [-3 * DAY, 3 * DAY, -60 * DAY])
    def test_moves_a_row_that_waits(self, state, by):
        row = Row("expire", state, scheduled_at=NOW - 99 * DAY)

        planned = plan_of(OneField, [row], ends_at=ENDS + by)

        [move] = planned.changes
        assert isinstance(move, Move)
        assert move.row is row
        assert (move.times.nominal_at, move.times.scheduled_at) == (ENDS + by, ENDS + by)
        assert (move.times.anchor, move.times.anchor_value) == ("field:ends_at", ENDS + by)
        assert "field:ends_at" in move.why

    def test_keeps_the_later_time_of_a_retry(self):
        """Its backoff is not cut short."""
        row = Row("expire", State.RETRYABLE, scheduled_at=ENDS + 2 * DAY)

        [move] = plan_of(OneField, [row], ends_at=ENDS + DAY).changes

        assert (move.times.nominal_at, move.times.scheduled_at) == (ENDS + DAY, ENDS + 2 * DAY)

    def test_takes_the_new_time_where_it_is_later_than_the_retry(self):
        row = Row("expire", State.RETRYABLE, scheduled_at=ENDS + 2 * DAY)

        [move] = plan_of(OneField, [row], ends_at=ENDS + 5 * DAY).changes

        assert move.times.scheduled_at == ENDS + 5 * DAY

    def test_moves_a_scheduled_row_back_from_where_an_operator_put_it(self):
        row = Row("expire", State.SCHEDULED, scheduled_at=ENDS + 9 * DAY)

        [move] = plan_of(OneField, [row], ends_at=ENDS + DAY).changes

        assert move.times.scheduled_at == ENDS + DAY

    def test_moves_the_time_of_expiry_too(self):
        row = Row("expire")

        [move] = of_kind(plan_of(Trial, [row], ends_at=ENDS + DAY), Move)

        assert move.times.expires_at == ENDS + DAY + timedelta(days=7)

    @pytest.mark.parametrize("state", DUE)
    def test_supersedes_a_row_that_is_due_already(self, state):
        row = Row("expire", state, revision=3)

        cancel, create = plan_of(OneField, [row], ends_at=ENDS + DAY).changes

        assert (cancel.row, cancel.reason.code) == (row, ReasonCode.SUPERSEDED)
        assert cancel.why == cancel.reason.text
        assert (create.revision, create.previous) == (4, row.id)
        assert create.times.anchor_value == ENDS + DAY

    def test_foresees_follow_ups_from_the_new_time(self):
        planned = plan_of(TwoSteps, [Row("expire")], ends_at=ENDS + 10 * DAY)

        assert planned.foreseen[0].expected_at == ENDS + 12 * DAY

    def test_keeps_what_counts_from_the_start(self):
        rows = carry_out(plan_of(Trial), [])

        planned = plan_of(Trial, rows, ends_at=ENDS + DAY)

        assert summary(planned) == [("keep", "welcome"), ("move", "remind"), ("move", "expire")]

    def test_is_also_a_schedule_that_changed(self):
        """The anchor is the same, the definition wants another time."""
        row = Row("remind", nominal_at=ENDS - 9 * DAY)

        [move] = of_kind(plan_of(Trial, [row]), Move)

        assert (move.row, move.times.nominal_at) == (row, ENDS - 5 * DAY)

    def test_is_also_a_zone_that_changed(self):
        berlin = ZoneInfo("Europe/Berlin")
        start = datetime(2026, 3, 28, 9, tzinfo=UTC)
        rows = carry_out(plan_of(OneStart, started_at=start), [])

        [move] = plan_of(OneStart, rows, started_at=start, zone=berlin).changes

        assert move.times.nominal_at == datetime(2026, 3, 29, 8, tzinfo=UTC)


class TestAnchorCleared:
    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_cancels_the_row_and_waits(self, state):
        row = Row("expire", state)

        planned = plan_of(OneField, [row], ends_at=None)

        assert summary(planned) == [("cancel", "expire", ReasonCode.SUPERSEDED)]
        assert "ends_at is not set" in planned.changes[0].why
        assert planned.open

    def test_and_set_again_makes_the_next_revision(self):
        rows = [Row("expire")]
        rows = carry_out(plan_of(OneField, rows, ends_at=None), rows)

        [create] = plan_of(OneField, rows, ends_at=ENDS).changes

        assert (create.revision, create.previous) == (2, rows[0].id)
        assert create.times.anchor_value == ENDS

    def test_changes_nothing_twice(self):
        rows = [Row("expire")]
        rows = carry_out(plan_of(OneField, rows, ends_at=None), rows)

        planned = plan_of(OneField, rows, ends_at=None)

        assert planned.changes == []
        assert planned.open

    def test_leaves_a_completed_row_and_its_follow_up(self):
        completed = Row("expire", State.COMPLETED, finished_at=NOW)
        follow_up = Row("check", nominal_at=NOW + 2 * DAY, anchor_value=NOW)

        planned = plan_of(TwoSteps, [completed, follow_up], ends_at=None)

        assert summary(planned) == [("keep", "expire"), ("keep", "check")]

    def test_of_a_completed_row_leaves_nothing_to_wait_for(self):
        assert not plan_of(OneField, [Row("expire", State.COMPLETED)], ends_at=None).open

    def test_cancels_the_open_follow_up_of_a_row_that_was_to_run_again(self):
        rows = [
            Row("expire", State.SCHEDULED, revision=2),
            Row("check", nominal_at=NOW + 2 * DAY, anchor_value=NOW),
        ]

        planned = plan_of(TwoSteps, rows, ends_at=None)

        assert summary(planned) == [
            ("cancel", "expire", ReasonCode.SUPERSEDED),
            ("cancel", "check", ReasonCode.SUPERSEDED),
        ]


class TestFollowUp:
    def test_is_created_when_its_predecessor_has_completed(self):
        """It counts from the moment of that, not from when it was due."""
        done_at = ENDS + timedelta(hours=3)
        completed = Row("expire", State.COMPLETED, finished_at=done_at)

        planned = plan_of(Trial, [completed], now=done_at)

        [create] = [change for change in of_kind(planned, Create) if change.task_name == "check"]
        assert (create.times.anchor, create.times.anchor_value) == ("end:expire", done_at)
        assert create.times.nominal_at == done_at + 2 * DAY
        assert [(item.task_name, item.expected_at) for item in planned.foreseen] == [
            ("close", done_at + 2 * DAY + timedelta(hours=6))
        ]

    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_is_not_created_before(self, state):
        planned = plan_of(TwoSteps, [Row("expire", state)])

        assert of_kind(planned, Create) == []
        assert [item.task_name for item in planned.foreseen] == ["check"]

    @pytest.mark.parametrize("state", UNSUCCESSFUL)
    def test_never_comes_when_its_predecessor_ended_otherwise(self, state):
        ended = Row("expire", state)

        planned = plan_of(TwoSteps, [ended])

        assert summary(planned) == [("keep", "expire")]
        assert planned.foreseen == []
        assert not planned.open

    @pytest.mark.parametrize("state", UNSUCCESSFUL)
    @pytest.mark.parametrize("follow_up_state", OPEN_IN_ORDER)
    def test_is_cancelled_with_its_predecessor(self, state, follow_up_state):
        rows = [Row("expire", state), Row("check", follow_up_state)]

        planned = plan_of(TwoSteps, rows)

        [cancel] = of_kind(planned, Cancel)
        assert (cancel.row, cancel.reason.code) == (rows[1], ReasonCode.PREDECESSOR)
        assert cancel.why == f"expire ended {state} (error)"
        assert planned.foreseen == []
        assert not planned.open

    def test_of_a_follow_up_that_will_never_come_never_comes(self):
        rows = [Row("expire", State.DISCARDED), Row("close", State.SCHEDULED)]

        planned = plan_of(Trial, rows)

        assert ("cancel", "close", ReasonCode.PREDECESSOR) in summary(planned)
        assert planned.foreseen == []

    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_is_superseded_when_its_predecessor_is_to_run_again(self, state):
        rows = [Row("expire", State.COMPLETED), Row("check", state, nominal_at=NOW + 2 * DAY, anchor_value=NOW)]

        planned = plan_of(TwoSteps, rows, ends_at=ENDS + DAY)

        assert summary(planned) == [("create", "expire"), ("cancel", "check", ReasonCode.SUPERSEDED)]
        assert planned.changes[1].why == "expire is to run again first"
        assert planned.foreseen == [Foreseen(task_name="check", predecessor="expire", expected_at=ENDS + DAY + 2 * DAY)]

    @pytest.mark.parametrize("reason", [ReasonCode.SUPERSEDED, ReasonCode.DONE, ReasonCode.GUARD, ReasonCode.ERROR])
    def test_comes_again_once_its_predecessor_has_completed_again(self, reason):
        state = State.COMPLETED if reason == ReasonCode.DONE else State.CANCELLED
        again = ENDS + DAY
        rows = [
            Row("expire", State.COMPLETED, revision=2, anchor_value=again, finished_at=again),
            Row("check", state, anchor_value=NOW, nominal_at=NOW + 2 * DAY, reason_code=reason),
        ]

        planned = plan_of(TwoSteps, rows, ends_at=again, now=again)

        [create] = of_kind(planned, Create)
        assert (create.task_name, create.revision, create.previous) == ("check", 2, rows[1].id)
        assert create.times.anchor_value == again

    def test_comes_again_also_when_it_is_due_at_once(self):
        """Only a field says by lying in the past that nothing more is wanted."""
        rows = [
            Row("expire", State.COMPLETED, finished_at=NOW - 9 * DAY),
            Row("check", State.COMPLETED, anchor_value=NOW - 20 * DAY),
        ]

        [create] = of_kind(plan_of(TwoSteps, rows), Create)

        assert create.times.nominal_at == NOW - 7 * DAY

    def test_comes_when_a_predecessor_that_had_failed_was_redriven(self):
        rows = [
            Row("expire", State.COMPLETED, revision=2),
            Row("check", State.CANCELLED, reason_code=ReasonCode.PREDECESSOR),
        ]

        [create] = of_kind(plan_of(TwoSteps, rows), Create)

        assert (create.task_name, create.revision) == ("check", 2)

    @pytest.mark.parametrize(
        "predecessor", [Row("expire", State.SCHEDULED), Row("expire", State.COMPLETED)], ids=["open", "completed"]
    )
    def test_stays_away_once_an_operator_cancelled_it(self, predecessor):
        cancelled = Row("check", State.CANCELLED, anchor_value=NOW - DAY, reason_code=ReasonCode.OPERATOR)

        planned = plan_of(TwoSteps, [predecessor, cancelled])

        assert of_kind(planned, Create) == []
        assert planned.foreseen == []

    def test_of_one_that_an_operator_cancelled_never_comes(self):
        rows = [
            Row("expire", State.SCHEDULED),
            Row("check", State.CANCELLED, reason_code=ReasonCode.OPERATOR),
            Row("close", State.SCHEDULED),
        ]

        planned = plan_of(Trial, rows)

        [cancel] = of_kind(planned, Cancel)
        assert (cancel.row, cancel.why) == (rows[2], "check was cancelled by an operator")

    def test_is_moved_with_the_schedule_of_the_definition(self):
        rows = [Row("expire", State.COMPLETED), Row("check", nominal_at=NOW + 9 * DAY, anchor_value=NOW)]

        [move] = of_kind(plan_of(TwoSteps, rows), Move)

        assert move.times.nominal_at == NOW + 2 * DAY


class TestEnded:
    @pytest.mark.parametrize("state", sorted(FINAL))
    @pytest.mark.parametrize("reason", SAID_SOMETHING)
    def test_stands_while_its_anchor_does(self, state, reason):
        row = Row("expire", state, reason_code=reason)

        planned = plan_of(OneField, [row])

        assert planned.changes == [Keep(row=row, why=f"it has ended ({reason})")]
        assert not planned.open

    @pytest.mark.parametrize("state", sorted(FINAL))
    @pytest.mark.parametrize("reason", SAID_SOMETHING)
    def test_comes_again_when_the_field_moves_to_the_future(self, state, reason):
        row = Row("expire", state, reason_code=reason, revision=2)

        planned = plan_of(OneField, [row], ends_at=NOW + timedelta(microseconds=1))

        [create] = planned.changes
        assert isinstance(create, Create)
        assert (create.revision, create.previous) == (3, row.id)
        assert "changed after it had ended" in create.why
        assert planned.open

    @pytest.mark.parametrize("ends_at", [NOW, NOW - DAY])
    def test_stands_when_the_field_moves_to_the_past(self, ends_at):
        planned = plan_of(OneField, [Row("expire", State.COMPLETED)], ends_at=ends_at)

        assert summary(planned) == [("keep", "expire")]
        assert not planned.open

    def test_stands_when_the_field_is_ahead_and_its_time_is_not(self):
        """Five days before a day four days from now."""
        row = Row("remind", State.COMPLETED)

        planned = plan_of(Trial, [row], ends_at=NOW + 4 * DAY)

        assert ("keep", "remind") in summary(planned)

    @pytest.mark.parametrize("ends_at", [ENDS, ENDS + DAY, None])
    def test_stands_when_an_operator_cancelled_it(self, ends_at):
        row = Row("expire", State.CANCELLED, reason_code=ReasonCode.OPERATOR)

        planned = plan_of(OneField, [row], ends_at=ends_at)

        assert summary(planned) == [("keep", "expire")]
        assert not planned.open

    @pytest.mark.parametrize("reason", LEFT_OPEN)
    @pytest.mark.parametrize("ends_at", [ENDS, ENDS + DAY, NOW - DAY])
    def test_comes_again_when_its_end_said_nothing_about_the_future(self, reason, ends_at):
        row = Row("expire", State.CANCELLED, reason_code=reason)

        [create] = plan_of(OneField, [row], ends_at=ends_at).changes

        assert (create.revision, create.previous, create.times.nominal_at) == (2, row.id, ends_at)
        assert reason in create.why

    def test_stands_when_the_schedule_alone_changes(self):
        """What was done was done; a new release does not repeat it."""
        row = Row("remind", State.COMPLETED, nominal_at=ENDS - 9 * DAY)

        assert ("keep", "remind") in summary(plan_of(Trial, [row]))


class TestSpare:
    @pytest.mark.parametrize("ends_at", [ENDS, ENDS + DAY, NOW - DAY, None])
    @pytest.mark.parametrize("state", sorted(LEASED))
    def test_leaves_the_task_that_is_being_run(self, ends_at, state):
        row = Row("expire", state)

        planned = plan_of(TwoSteps, [row], ends_at=ends_at, spare={row.id})

        assert planned.changes == [Keep(row=row, why="it is being run")]
        assert [item.task_name for item in planned.foreseen] == ["check"]
        assert planned.open

    def test_leaves_a_follow_up_whose_predecessor_is_to_run_again(self):
        rows = [Row("expire", State.COMPLETED), Row("check", State.ACTIVE, anchor_value=NOW)]

        planned = plan_of(TwoSteps, rows, ends_at=ENDS + DAY, spare={rows[1].id})

        assert summary(planned) == [("create", "expire"), ("keep", "check")]

    def test_treats_the_others_as_ever(self):
        rows = [Row("remind", State.ACTIVE, nominal_at=ENDS - 5 * DAY), Row("expire", State.ACTIVE)]

        planned = plan_of(Trial, rows, ends_at=ENDS + DAY, spare={rows[0].id})

        assert ("keep", "remind") in summary(planned)
        assert ("cancel", "expire", ReasonCode.SUPERSEDED) in summary(planned)

    def test_does_not_hold_a_row_that_has_ended(self):
        row = Row("expire", State.COMPLETED)

        planned = plan_of(TwoSteps, [row], spare={row.id})

        assert summary(planned) == [("keep", "expire"), ("create", "check")]


class TestRemoved:
    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_cancels_rows_of_a_task_the_definition_has_no_more(self, state):
        rows = [Row("expire"), Row("check", state)]

        planned = plan_of(OneField, rows)

        assert summary(planned) == [("keep", "expire"), ("cancel", "check", ReasonCode.DEFINITION)]
        assert "check is no longer planned" in planned.changes[1].why

    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_leaves_those_that_have_ended(self, state):
        assert summary(plan_of(OneField, [Row("expire"), Row("check", state)])) == [("keep", "expire")]

    def test_cancels_rows_of_a_task_whose_schedule_was_taken_away(self):
        planned = plan_of(Trial, [Row("on_demand")])

        assert ("cancel", "on_demand", ReasonCode.DEFINITION) in summary(planned)

    def test_does_not_hold_the_run_open(self):
        rows = [Row("expire", State.COMPLETED), Row("check", State.ACTIVE)]

        assert not plan_of(OneField, rows).open

    def test_comes_back_with_the_definition(self):
        rows = [Row("expire", State.COMPLETED), Row("check", nominal_at=NOW + 2 * DAY, anchor_value=NOW)]
        rows = carry_out(plan_of(OneField, rows), rows)

        [create] = of_kind(plan_of(TwoSteps, rows), Create)

        assert (create.task_name, create.revision, create.previous) == ("check", 2, rows[1].id)


class TestOpen:
    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_while_a_row_is(self, state):
        assert plan_of(OneField, [Row("expire", state)]).open

    def test_while_one_is_to_be_created(self):
        assert plan_of(OneField).open

    def test_while_a_field_is_awaited(self):
        assert plan_of(OneField, ends_at=None).open

    def test_while_a_follow_up_is_to_come(self):
        assert plan_of(TwoSteps, [Row("expire", State.COMPLETED)]).open

    @pytest.mark.parametrize("first", sorted(FINAL))
    @pytest.mark.parametrize("second", sorted(FINAL))
    def test_no_more_when_all_has_ended(self, first, second):
        rows = [Row("expire", first), Row("check", second, anchor_value=NOW)]

        assert not plan_of(TwoSteps, rows).open

    def test_while_one_of_several_is(self):
        rows = carry_out(plan_of(Trial), [])
        ended = [replace(row, state=State.CANCELLED, reason_code=ReasonCode.OPERATOR) for row in rows]

        assert not plan_of(Trial, ended).open
        for number, row in enumerate(rows):
            assert plan_of(Trial, [*ended[:number], row, *ended[number + 1 :]]).open


class TestAnyFacts:
    """Whatever the definition and the rows are: one plan is enough, and it leaves no row in doubt."""

    def definition(self, rng):
        """A timeline of one to seven tasks; follow-ups hang on earlier ones with a schedule, some before them."""
        body, scheduled = {"entity": "testapp.Order"}, []
        for number in range(rng.randint(1, 7)):
            days = rng.randint(0, 3)
            kinds = [after(days=days), before("a_at", days=days + 1), at("a_at"), after("b_at", hours=days)]
            if scheduled:
                kinds += [after(rng.choice(scheduled), days=days)] * 4
            expires = rng.choice([None, timedelta(days=1)])

            def method(self, order):
                return None

            method.__name__ = f"t{number}"
            declared = task(rng.choice([*kinds, None]), expires=expires)(method)
            body[declared.name] = declared
            scheduled += [declared] if declared.when else []
        names = [name for name in body if name != "entity"]
        rng.shuffle(names)
        return type("Drawn", (Timeline,), {"entity": body["entity"], **{name: body[name] for name in names}})

    def instant(self, rng):
        """One of a few, so that the same comes up again."""
        return NOW + rng.randint(-4, 4) * DAY

    def rows(self, rng, definition):
        """Up to three revisions a task, of which only the latest may be open; some of tasks that are gone."""
        made = []
        for name in [*definition.tasks, "gone"]:
            count = rng.choice([0, 0, 1, 1, 2, 3])
            for revision in range(1, count + 1):
                state = rng.choice(list(State) if revision == count else sorted(FINAL))
                codes = [ReasonCode.DONE] if state == State.COMPLETED else sorted(set(ReasonCode) - {ReasonCode.DONE})
                nominal = self.instant(rng)
                made.append(
                    Row(
                        name,
                        state,
                        revision,
                        nominal,
                        rng.choice([nominal, self.instant(rng)]),
                        rng.choice([nominal, self.instant(rng)]),
                        finished_at=min(self.instant(rng), NOW) if state in FINAL else None,
                        reason_code=rng.choice(codes) if state in FINAL else "",
                    )
                )
        rng.shuffle(made)
        return made

    def facts(self, seed):
        rng = random.Random(seed)  # noqa: S311 (draws examples)
        cls = self.definition(rng)
        rows = self.rows(rng, cls.definition)
        leased = [row.id for row in rows if row.state in LEASED]
        return rows, {
            "definition": cls.definition,
            "started_at": self.instant(rng),
            "anchors": {name: rng.choice([None, self.instant(rng), self.instant(rng)]) for name in ("a_at", "b_at")},
            "zone": rng.choice([UTC, ZoneInfo("Europe/Berlin")]),
            "now": NOW,
            "spare": set(rng.sample(leased, rng.randint(0, min(1, len(leased))))),
        }

    @pytest.mark.parametrize("seed", range(20))
    def test_need_one_plan_only(self, seed):
        """Carried out and planned again, there is nothing left to do; also a third time."""
        for number in range(100):
            rows, facts = self.facts(f"{seed}/{number}")

            first = plan(rows=rows, **facts)
            rows = carry_out(first, rows)
            second = plan(rows=rows, **facts)

            assert {type(change) for change in second.changes} <= {Keep}
            assert (second.foreseen, second.open) == (first.foreseen, first.open)
            assert plan(rows=carry_out(second, rows), **facts) == second

    @pytest.mark.parametrize("seed", range(20))
    def test_need_one_plan_only_at_each_step_of_a_life(self, seed):
        """Time passes, fields change, tasks end this way or that; each time one plan settles it."""
        for number in range(20):
            rng = random.Random(f"life {seed}/{number}")  # noqa: S311 (draws examples)
            definition, rows, now = self.definition(rng).definition, [], NOW
            anchors = {"a_at": self.instant(rng), "b_at": None}
            for _ in range(12):
                facts = {"started_at": NOW, "anchors": anchors, "zone": UTC, "now": now}

                first = plan(definition, rows=rows, **facts)
                rows = carry_out(first, rows, now=now)
                second = plan(definition, rows=rows, **facts)

                assert {type(change) for change in second.changes} <= {Keep}
                assert (second.foreseen, second.open) == (first.foreseen, first.open)
                now += rng.choice([0, 1, 24, 72]) * timedelta(hours=1)
                anchors = {**anchors, rng.choice(["a_at", "b_at", "other"]): rng.choice([None, self.instant(rng)])}
                rows = [self.lived(rng, row, now) for row in rows]

    def lived(self, rng, row, now):
        """The row a little later: as it was, further on its way, or ended."""
        if row.state not in OPEN or rng.random() < 0.4:
            return row
        state = rng.choice([*OPEN_IN_ORDER, *[State.COMPLETED] * 4, State.DISCARDED, State.CANCELLED])
        code = {State.COMPLETED: ReasonCode.DONE, State.DISCARDED: ReasonCode.ERROR}.get(
            state, rng.choice([ReasonCode.GUARD, ReasonCode.OPERATOR, ReasonCode.EXPIRED])
        )
        if state in OPEN:
            return replace(row, state=state)
        return replace(row, state=state, finished_at=now, reason_code=code)

    @pytest.mark.parametrize("seed", range(10))
    def test_are_answered_alike_in_any_order_of_rows(self, seed):
        for number in range(50):
            rows, facts = self.facts(f"{seed}/{number}")
            known = {row.id for row in rows}

            planned, turned = plan(rows=rows, **facts), plan(rows=rows[::-1], **facts)

            assert (planned.foreseen, planned.open) == (turned.foreseen, turned.open)
            assert sorted(summary(planned)) == sorted(summary(turned))
            assert known == {row.id for row in rows}

    @pytest.mark.parametrize("seed", range(10))
    def test_leave_one_answer_for_each_open_row_and_one_open_row_for_each_task(self, seed):
        for number in range(50):
            rows, facts = self.facts(f"{seed}/{number}")

            planned = plan(rows=rows, **facts)

            answered = Counter(change.row.id for change in planned.changes if not isinstance(change, Create))
            assert set(answered.values()) <= {1}
            assert {row.id for row in rows if row.state in OPEN} <= set(answered)
            open_after = Counter(row.task_name for row in carry_out(planned, rows) if row.state in OPEN)
            assert set(open_after.values()) <= {1}

    @pytest.mark.parametrize("seed", range(10))
    def test_are_continued_by_the_next_revision_of_the_latest_row(self, seed):
        for number in range(50):
            rows, facts = self.facts(f"{seed}/{number}")
            latest = {row.task_name: row for row in sorted(rows, key=lambda row: row.revision)}

            for change in of_kind(plan(rows=rows, **facts), Create):
                before_it = latest.get(change.task_name)

                assert change.revision == (before_it.revision + 1 if before_it else 1)
                assert change.previous == (before_it.id if before_it else None)

    @pytest.mark.parametrize("seed", range(10))
    def test_hold_the_run_open_whenever_a_row_is_or_one_is_foreseen(self, seed):
        for number in range(50):
            rows, facts = self.facts(f"{seed}/{number}")

            planned = plan(rows=rows, **facts)

            left_open = [row for row in carry_out(planned, rows) if row.state in OPEN]
            waits = any(value is None for value in facts["anchors"].values())
            if left_open or planned.foreseen:
                assert planned.open
            elif not waits:
                assert not planned.open
