"""Fields that move, are cleared, and are set again."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.planning.situations import (
    DAY,
    DUE,
    ENDS,
    NOW,
    OPEN_IN_ORDER,
    OneField,
    OneStart,
    Row,
    Trial,
    TwoSteps,
    carry_out,
    of_kind,
    plan_of,
    summary,
)
from timeline.lifecycle import WAITING, ReasonCode, State
from timeline.planning import Move


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
        assert "its anchor (ends_at)" in move.why

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
