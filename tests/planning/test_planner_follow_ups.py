"""What follows the end of another task."""

from datetime import timedelta

import pytest

from tests.planning.situations import (
    DAY,
    ENDS,
    NOW,
    OPEN_IN_ORDER,
    UNSUCCESSFUL,
    Row,
    Trial,
    TwoSteps,
    of_kind,
    plan_of,
    summary,
)
from timeline.lifecycle import ReasonCode, State
from timeline.planning import Cancel, Create, Foreseen, Move


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
