"""What is repeated: one row at a time, the next one when it ends, and when the series is over."""

from datetime import timedelta

import pytest

from tests.planning.situations import DAY, DUE, LEFT_OPEN, NOW, OPEN_IN_ORDER, Row, of_kind, plan_of, summary
from timeline.definition import Timeline, task
from timeline.lifecycle import WAITING, ReasonCode, State
from timeline.planning import Cancel, Create, Foreseen, Move
from timeline.timing import after, every

WEEK = 7 * DAY
MINUTE = timedelta(minutes=1)


class Chase(Timeline):
    entity = "testapp.Order"
    exits = {"order.paid": "paid"}

    @task(every(days=7, most=4), expires=DAY)
    def nudge(self, order): ...

    @task(after(nudge, days=2))
    def give_up(self, order): ...

    @task(after(nudge, ended=True))
    def tidy(self, order): ...


class Endless(Timeline):
    name = "chase"
    entity = "testapp.Order"
    exits = {"order.paid": "paid"}

    @task(every(days=7))
    def nudge(self, order): ...


class Daily(Timeline):
    """The same, changed."""

    name = "chase"
    entity = "testapp.Order"

    @task(every(days=1, most=40))
    def nudge(self, order): ...


class Once(Timeline):
    """The same, no longer repeated."""

    name = "chase"
    entity = "testapp.Order"

    @task(after(days=7))
    def nudge(self, order): ...


def nudge(number, state=State.SCHEDULED, *, ended=MINUTE, **given):
    at = NOW + number * WEEK
    given.setdefault("nominal_at", at)
    if state not in OPEN_IN_ORDER:
        given.setdefault("finished_at", given["nominal_at"] + ended)
    return Row("nudge", state, anchor_value=NOW, anchor="start", occurrence=str(number), **given)


def planned(*rows, definition=Chase, **given):
    return plan_of(definition, rows, **given)


def made(answer):
    """Occurrence and time of each row that is to be made."""
    return [
        (change.occurrence or change.like.occurrence, change.times.nominal_at - NOW)
        for change in of_kind(answer, Create)
    ]


class TestFirst:
    def test_is_one_interval_after_the_start(self):
        answer = planned()

        [create] = of_kind(answer, Create)
        assert made(answer) == [("1", WEEK)]
        assert (create.times.scheduled_at, create.times.expires_at) == (NOW + WEEK, NOW + WEEK + DAY)
        assert answer.open

    def test_foresees_the_next_and_what_follows_the_last(self):
        assert planned().foreseen == [
            Foreseen(task_name="nudge", predecessor="nudge", expected_at=NOW + 2 * WEEK, occurrence="2"),
            Foreseen(task_name="nudge", predecessor="nudge", expected_at=NOW + 3 * WEEK, occurrence="3"),
            Foreseen(task_name="nudge", predecessor="nudge", expected_at=NOW + 4 * WEEK, occurrence="4"),
            Foreseen(task_name="give_up", predecessor="nudge", expected_at=NOW + 4 * WEEK + 2 * DAY),
            Foreseen(task_name="tidy", predecessor="nudge", expected_at=NOW + 4 * WEEK),
        ]

    def test_foresees_three_of_what_has_no_number(self):
        assert [item.occurrence for item in planned(definition=Endless).foreseen] == ["2", "3", "4"]


class TestOpen:
    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_stands_and_nothing_is_made_beside_it(self, state):
        answer = planned(nudge(1, State.COMPLETED), nudge(2, state))

        assert summary(answer) == [("keep", "nudge")]
        assert [item.occurrence for item in answer.foreseen if item.occurrence] == ["3", "4"]

    def test_that_was_moved_stands_where_it_was_moved_to(self):
        answer = planned(nudge(1, State.COMPLETED), nudge(2, scheduled_at=NOW + 20 * DAY))

        assert summary(answer) == [("keep", "nudge")]
        assert answer.foreseen[0].expected_at == NOW + 21 * DAY

    def test_that_was_moved_forward_does_not_bring_the_next_forward(self):
        answer = planned(nudge(1, State.COMPLETED), nudge(2, scheduled_at=NOW + 8 * DAY))

        assert answer.foreseen[0].expected_at == NOW + 3 * WEEK

    @pytest.mark.parametrize("state", sorted(WAITING))
    def test_moves_when_the_interval_is_changed(self, state):
        row = nudge(2, state)

        answer = planned(nudge(1, State.COMPLETED), row, definition=Daily)

        [move] = of_kind(answer, Move)
        assert move.row is row
        assert move.times.nominal_at == NOW + 8 * DAY

    @pytest.mark.parametrize("state", DUE)
    def test_that_is_due_is_made_again_when_the_interval_is_changed(self, state):
        row = nudge(2, state)

        answer = planned(nudge(1, State.COMPLETED), row, definition=Daily)

        [create] = of_kind(answer, Create)
        assert (create.like, create.revision, create.previous) == (row, 2, row.id)

    def test_keeps_its_time_when_the_one_before_it_was_run_again(self):
        again = nudge(1, State.COMPLETED, revision=2, finished_at=NOW + 2 * WEEK + DAY)

        assert summary(planned(again, nudge(2))) == [("keep", "nudge")]


class TestEnded:
    ENDS = [
        (State.COMPLETED, ReasonCode.DONE),
        (State.COMPLETED, ReasonCode.SHADOW),
        (State.DISCARDED, ReasonCode.ERROR),
        (State.DISCARDED, ReasonCode.WORKER_LOST),
        (State.DISCARDED, ReasonCode.HANDLER),
        (State.CANCELLED, ReasonCode.GUARD),
        (State.CANCELLED, ReasonCode.HANDLER),
        (State.CANCELLED, ReasonCode.EXPIRED),
    ]

    @pytest.mark.parametrize(("state", "reason"), ENDS)
    def test_is_followed_by_the_next_whatever_became_of_it(self, state, reason):
        answer = planned(nudge(1, State.COMPLETED), nudge(2, state, reason_code=reason))

        assert made(answer) == [("3", 3 * WEEK)]
        assert [item.occurrence for item in answer.foreseen if item.occurrence] == ["4"]

    @pytest.mark.parametrize(
        ("late", "weeks"),
        [(timedelta(0), 2), (WEEK - MINUTE, 2), (WEEK, 3), (WEEK + MINUTE, 3), (3 * WEEK + MINUTE, 5)],
    )
    def test_late_is_followed_at_the_first_time_that_has_not_passed(self, late, weeks):
        """No drift, and no burst: what has passed meanwhile is left out, and does not count."""
        assert made(planned(nudge(1, State.COMPLETED, ended=late))) == [("2", weeks * WEEK)]

    def test_early_does_not_bring_the_next_forward(self):
        assert made(planned(nudge(1, State.COMPLETED, ended=-3 * DAY))) == [("2", 2 * WEEK)]

    @pytest.mark.parametrize("reason", LEFT_OPEN)
    def test_that_was_left_open_is_made_again(self, reason):
        row = nudge(2, State.CANCELLED, reason_code=reason)

        [create] = of_kind(planned(nudge(1, State.COMPLETED), row), Create)

        assert (create.like, create.revision) == (row, 2)
        assert create.times.nominal_at == NOW + 2 * WEEK

    def test_counts_to_ten_as_numbers_do(self):
        rows = [nudge(number, State.COMPLETED) for number in range(1, 11)]

        assert made(planned(*rows, definition=Endless)) == [("11", 11 * WEEK)]

    def test_is_foreseen_from_the_one_that_is_made(self):
        answer = planned(nudge(1, State.COMPLETED), definition=Endless)

        assert [(item.occurrence, item.expected_at) for item in answer.foreseen] == [
            ("3", NOW + 3 * WEEK),
            ("4", NOW + 4 * WEEK),
            ("5", NOW + 5 * WEEK),
        ]


class TestOver:
    def rows(self, state, reason=ReasonCode.DONE):
        return [*(nudge(number, State.COMPLETED) for number in (1, 2, 3)), nudge(4, state, reason_code=reason)]

    def test_after_the_last_what_follows_is_made(self):
        answer = planned(*self.rows(State.COMPLETED))

        assert [change.task_name for change in of_kind(answer, Create)] == ["give_up", "tidy"]
        assert of_kind(answer, Create)[0].times.nominal_at == NOW + 4 * WEEK + MINUTE + 2 * DAY

    def test_a_last_one_that_failed_is_followed_by_what_takes_any_end(self):
        answer = planned(*self.rows(State.DISCARDED, ReasonCode.ERROR))

        assert [change.task_name for change in of_kind(answer, Create)] == ["tidy"]

    def test_until_ends_it_as_if_it_had_completed(self):
        answer = planned(nudge(1, State.COMPLETED), nudge(2, State.CANCELLED, reason_code=ReasonCode.UNTIL))

        assert [change.task_name for change in of_kind(answer, Create)] == ["give_up", "tidy"]

    def test_a_person_ends_it(self):
        answer = planned(nudge(1, State.COMPLETED), nudge(2, State.CANCELLED, reason_code=ReasonCode.OPERATOR))

        assert [change.task_name for change in of_kind(answer, Create)] == ["tidy"]

    def test_of_a_series_alone_the_run_is_finished(self):
        assert not planned(nudge(1, State.CANCELLED, reason_code=ReasonCode.UNTIL), definition=Endless).open

    def test_goes_on_when_its_end_is_made_again(self):
        ended = nudge(2, State.CANCELLED, reason_code=ReasonCode.OPERATOR)
        again = nudge(2, State.AVAILABLE, revision=2, previous=ended.id)

        answer = planned(nudge(1, State.COMPLETED), ended, again)

        assert summary(answer) == [("keep", "nudge")]
        assert answer.open

    def test_is_not_over_while_an_earlier_one_runs_again(self):
        again = nudge(3, State.AVAILABLE, revision=2)

        answer = planned(*self.rows(State.COMPLETED), again)

        assert of_kind(answer, Create) == []
        assert answer.open


class TestDefinitionThatHasChanged:
    def test_to_repeat_takes_away_the_one_that_was_there(self):
        row = Row("nudge", nominal_at=NOW + WEEK, anchor_value=NOW, anchor="start")

        answer = planned(row, definition=Endless)

        assert [(cancel.row, cancel.reason.code) for cancel in of_kind(answer, Cancel)] == [
            (row, ReasonCode.DEFINITION)
        ]
        assert made(answer) == [("1", WEEK)]

    def test_to_come_once_takes_away_the_series(self):
        row = nudge(2)

        answer = planned(nudge(1, State.COMPLETED), row, definition=Once)

        assert [cancel.row for cancel in of_kind(answer, Cancel)] == [row]
        assert [change.occurrence for change in of_kind(answer, Create)] == [""]
