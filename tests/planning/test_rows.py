"""One row at a time: what is done so that the row of the time that is wanted is there."""

from datetime import timedelta

import pytest

from tests.planning.situations import DAY, ENDS, NOW, OneField, Row
from timeline.lifecycle import OPEN, WAITING, ReasonCode, State
from timeline.planning import Cancel, Create, Keep, Move, Plan, Times
from timeline.planning.answers import Rows

EXPIRE = OneField.definition.tasks["expire"]


def times_at(moment):
    return Times(nominal_at=moment, scheduled_at=moment, anchor="field:ends_at", anchor_value=moment, expires_at=None)


def changes_of(row, moment=ENDS):
    result = Plan()
    outlook = Rows(result, NOW).with_row(EXPIRE, times_at(moment), row)
    return [type(change) for change in result.changes], outlook


class TestWithRow:
    def test_makes_one_where_there_is_none(self):
        changes, outlook = changes_of(None)

        assert changes == [Create]
        assert outlook.expected_at == ENDS

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_keeps_an_open_one_of_that_time(self, state):
        assert changes_of(Row("expire", state))[0] == [Keep]

    @pytest.mark.parametrize(
        ("row", "change"),
        [
            (Row("expire", scheduled_at=ENDS + DAY, planned_at=ENDS + DAY), Move),
            (Row("expire", scheduled_at=ENDS + DAY, planned_at=ENDS), Keep),  # Somebody moved it.
            (Row("expire", scheduled_at=ENDS + DAY), Keep),  # By no plan.
            (Row("expire", State.RETRYABLE, scheduled_at=ENDS + DAY, planned_at=ENDS + DAY), Keep),
            (Row("expire", scheduled_at=NOW, planned_at=NOW), Keep),  # It is due already.
            (Row("expire", planned_at=ENDS), Keep),
        ],
    )
    def test_moves_one_that_waits_for_when_its_plan_had_it_due_and_has_no_more(self, row, change):
        assert changes_of(row)[0] == [change]

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_moves_one_that_waits_and_replaces_one_that_is_in_work(self, state):
        changes, outlook = changes_of(Row("expire", state), ENDS + DAY)

        assert changes == ([Move] if state in WAITING else [Cancel, Create])
        assert outlook.expected_at == ENDS + DAY

    def test_lets_one_that_failed_wait_longer_and_keeps_when_the_plan_has_it_due(self):
        result, later = Plan(), ENDS + 3 * DAY
        waits = Row("expire", State.RETRYABLE, scheduled_at=later, planned_at=ENDS)

        outlook = Rows(result, NOW).with_row(EXPIRE, times_at(ENDS + DAY), waits)

        [move] = result.changes
        assert (move.times.scheduled_at, move.times.planned_at) == (later, ENDS + DAY)
        assert outlook.expected_at == later

    def test_leaves_one_that_has_ended_and_makes_it_again_for_another_time(self):
        done = Row("expire", State.COMPLETED)

        assert changes_of(done)[0] == [Keep]
        assert changes_of(done, ENDS + DAY)[0] == [Create]
        assert changes_of(done, NOW - timedelta(minutes=1))[0] == [Keep]  # A date of the past reminds nobody again.

    def test_leaves_what_an_operator_has_called_off(self):
        called_off = Row("expire", State.CANCELLED, reason_code=ReasonCode.OPERATOR)

        assert changes_of(called_off, ENDS + DAY)[0] == [Keep]


class TestStands:
    def test_is_as_it_is_whatever_its_time(self):
        result = Plan()
        rows = Rows(result, NOW)

        assert not rows.stands(None).to_come
        assert rows.stands(Row("expire", nominal_at=NOW)).to_come
        assert not rows.stands(Row("expire", State.COMPLETED)).to_come
        assert [type(change) for change in result.changes] == [Keep, Keep]
