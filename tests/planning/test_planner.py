"""A run that has no rows yet, and the same run asked again. What else a plan answers to: `test_planner_….py`."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.planning.situations import (
    DAY,
    ENDS,
    NOW,
    OPEN_IN_ORDER,
    START,
    OneField,
    OneStart,
    Row,
    Trial,
    TwoSteps,
    carry_out,
    plan_of,
    summary,
)
from timeline.exceptions import DateOutOfRange
from timeline.lifecycle import ReasonCode, State
from timeline.planning import Foreseen, Keep, plan


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

    def test_wants_the_same_rows_where_nobody_asks_what_follows(self):
        planned, foreseeing = (plan_of(Trial, foresees=asks) for asks in (False, True))

        assert planned.changes == foreseeing.changes
        assert (planned.foreseen, planned.open, foreseeing.open) == ([], True, True)

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
