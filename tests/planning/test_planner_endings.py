"""Rows that have ended, are spared, or are not planned any more; and when a run is finished."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import (
    DAY,
    ENDS,
    LEFT_OPEN,
    NOW,
    OPEN_IN_ORDER,
    SAID_SOMETHING,
    OneField,
    Row,
    Trial,
    TwoSteps,
    carry_out,
    of_kind,
    plan_of,
    summary,
)
from timeline.lifecycle import FINAL, LEASED, ReasonCode, State
from timeline.planning import Create, Keep


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
    def test_lets_rows_rest_of_a_task_the_definition_has_no_more(self, state):
        rows = [Row("expire"), Row("check", state)]

        planned = plan_of(OneField, rows)

        assert summary(planned) == [("keep", "expire"), ("keep", "check")]

    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_cancels_them_if_that_is_asked_for(self, state):
        rows = [Row("expire"), Row("check", state)]

        planned = plan_of(OneField, rows, cancels_undefined=True)

        assert summary(planned) == [("keep", "expire"), ("cancel", "check", ReasonCode.DEFINITION)]
        assert "check is no longer planned" in planned.changes[1].why

    @pytest.mark.parametrize("cancels", [False, True])
    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_leaves_those_that_have_ended(self, state, cancels):
        rows = [Row("expire"), Row("check", state)]

        assert summary(plan_of(OneField, rows, cancels_undefined=cancels)) == [("keep", "expire")]

    def test_cancels_rows_of_a_task_whose_schedule_was_taken_away(self):
        planned = plan_of(Trial, [Row("on_demand")])

        assert ("cancel", "on_demand", ReasonCode.DEFINITION) in summary(planned)

    def test_holds_the_run_open_as_long_as_it_rests(self):
        rows = [Row("expire", State.COMPLETED), Row("check", State.ACTIVE)]

        assert plan_of(OneField, rows).open
        assert not plan_of(OneField, rows, cancels_undefined=True).open

    def test_goes_on_with_the_definition(self):
        rows = [Row("expire", State.COMPLETED), Row("check", nominal_at=NOW + 2 * DAY, anchor_value=NOW)]
        rows = carry_out(plan_of(OneField, rows), rows)

        assert summary(plan_of(TwoSteps, rows)) == [("keep", "expire"), ("keep", "check")]

    def test_comes_back_with_the_definition_if_it_was_cancelled(self):
        rows = [Row("expire", State.COMPLETED), Row("check", nominal_at=NOW + 2 * DAY, anchor_value=NOW)]
        rows = carry_out(plan_of(OneField, rows, cancels_undefined=True), rows)

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
