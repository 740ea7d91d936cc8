"""What another task fans out: as it was made, one by one and together."""

from datetime import timedelta

import pytest

from tests.planning.situations import (
    DAY,
    LEFT_OPEN,
    NOW,
    OPEN_IN_ORDER,
    SAID_SOMETHING,
    UNSUCCESSFUL,
    Row,
    carry_out,
    of_kind,
    plan_of,
    summary,
)
from timeline.definition import Timeline, task
from timeline.lifecycle import ReasonCode, State
from timeline.planning import Cancel, Create, Foreseen, Keep
from timeline.timing import after, each_of

SPLIT_AT = NOW + timedelta(hours=1)
DONE_AT = NOW + timedelta(hours=2)
LATER = NOW + timedelta(hours=3)


class Settlement(Timeline):
    @task(after())
    def split(self): ...

    @task(each_of(split), expires=DAY)
    def settle(self): ...

    @task(after(settle))
    def report(self): ...

    @task(after(settle, hours=2, ended=True))
    def clean_up(self): ...


class Plain(Timeline):
    """Before it fanned out, or since it does no more."""

    name = "settlement"

    @task(after())
    def split(self): ...

    @task(after(split))
    def settle(self): ...


class Short(Timeline):
    @task(after())
    def split(self): ...


def split(state=State.COMPLETED, **given):
    return Row("split", state, nominal_at=NOW, anchor_value=NOW, finished_at=SPLIT_AT, anchor="start", **given)


def occurrence(name, state=State.AVAILABLE, *, since=SPLIT_AT, **given):
    given.setdefault("finished_at", DONE_AT)
    if state in OPEN_IN_ORDER:
        del given["finished_at"]
    return Row("settle", state, nominal_at=since, anchor_value=since, anchor="each:split", occurrence=name, **given)


def planned(*rows, definition=Settlement, **given):
    return plan_of(definition, rows, now=LATER, **given)


def created(answer):
    return [change.task_name for change in of_kind(answer, Create)]


class TestBeforeItsTaskHasCompleted:
    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_is_foreseen_and_made_out_of_nothing(self, state):
        answer = planned(split(state))

        assert created(answer) == []
        assert answer.foreseen == [
            Foreseen(task_name="settle", predecessor="split", expected_at=LATER),
            Foreseen(task_name="report", predecessor="settle", expected_at=LATER),
            Foreseen(task_name="clean_up", predecessor="settle", expected_at=LATER + timedelta(hours=2)),
        ]

    @pytest.mark.parametrize("state", UNSUCCESSFUL)
    def test_never_comes_when_that_ended_otherwise(self, state):
        answer = planned(split(state))

        assert summary(answer) == [("keep", "split")]
        assert not answer.open

    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_is_cancelled_when_that_is_to_run_again(self, state):
        answer = planned(split(), split(State.AVAILABLE, revision=2), occurrence("1", state), occurrence("2"))

        cancels = of_kind(answer, Cancel)
        assert [(cancel.row.occurrence, cancel.reason.code, cancel.why) for cancel in cancels] == [
            ("1", ReasonCode.SUPERSEDED, "split is to run again first"),
            ("2", ReasonCode.SUPERSEDED, "split is to run again first"),
        ]
        assert answer.open

    def test_is_cancelled_when_that_has_failed_since(self):
        answer = planned(split(), split(State.DISCARDED, revision=2), occurrence("1"))

        assert [cancel.reason.code for cancel in of_kind(answer, Cancel)] == [ReasonCode.PREDECESSOR]
        assert not answer.open

    def test_is_spared_while_its_handler_runs(self):
        row = occurrence("1", State.ACTIVE)

        answer = planned(split(), split(State.AVAILABLE, revision=2), row, occurrence("2"), spare={row.id})

        assert [cancel.row.occurrence for cancel in of_kind(answer, Cancel)] == ["2"]


class TestOpen:
    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_is_kept_and_waited_for(self, state):
        row = occurrence("1", state)

        answer = planned(split(), row, occurrence("2", State.COMPLETED))

        assert Keep(row=row, why="it was fanned out") in answer.changes
        assert created(answer) == []
        assert [item.task_name for item in answer.foreseen] == ["report", "clean_up"]
        assert answer.open

    def test_is_kept_when_it_was_moved(self):
        """Whoever moved it decides when; its followers are expected after it."""
        answer = planned(split(), occurrence("1", State.SCHEDULED, scheduled_at=NOW + 5 * DAY), occurrence("2"))

        assert {type(change) for change in answer.changes} == {Keep}
        assert answer.foreseen[0].expected_at == NOW + 5 * DAY

    @pytest.mark.parametrize("state", OPEN_IN_ORDER)
    def test_of_an_earlier_time_is_cancelled(self, state):
        answer = planned(split(), occurrence("old", state, since=NOW), occurrence("new"))

        [cancel] = of_kind(answer, Cancel)
        assert (cancel.row.occurrence, cancel.why) == ("old", "split has fanned out anew")

    def test_of_an_earlier_time_is_spared_while_its_handler_runs(self):
        row = occurrence("old", State.ACTIVE, since=NOW)

        answer = planned(split(), row, spare={row.id})

        assert of_kind(answer, Cancel) == []
        assert created(answer) == []

    def test_is_told_apart_by_its_latest_revision(self):
        first = occurrence("1", State.DISCARDED)
        second = occurrence("1", State.AVAILABLE, revision=2, previous=first.id)

        assert planned(split(), first, second).open
        assert planned(split(), second, first).open


class TestEnded:
    @pytest.mark.parametrize("reason", LEFT_OPEN)
    def test_that_was_left_open_is_made_again_as_it_was(self, reason):
        row = occurrence("1", State.CANCELLED, reason_code=reason, revision=2)

        [create] = of_kind(planned(split(), row), Create)

        assert (create.task_name, create.revision, create.previous, create.like) == ("settle", 3, row.id, row)
        assert (create.times.anchor, create.times.anchor_value) == ("each:split", SPLIT_AT)
        assert (create.times.scheduled_at, create.times.expires_at) == (SPLIT_AT, SPLIT_AT + DAY)

    @pytest.mark.parametrize("state", UNSUCCESSFUL)
    @pytest.mark.parametrize("reason", [*SAID_SOMETHING, ReasonCode.OPERATOR])
    def test_otherwise_stands(self, state, reason):
        answer = planned(split(), occurrence("1", state, reason_code=reason))

        assert "settle" not in created(answer)

    @pytest.mark.parametrize("reason", LEFT_OPEN)
    def test_of_an_earlier_time_is_nothing_to_anybody(self, reason):
        old = occurrence("old", State.CANCELLED, since=NOW, reason_code=reason)

        answer = planned(split(), old, occurrence("1", State.COMPLETED))

        assert created(answer) == ["report", "clean_up"]
        assert old not in [change.row for change in of_kind(answer, Keep)]


class TestTogether:
    def test_have_completed_with_the_last(self):
        rows = [occurrence("1", State.COMPLETED, finished_at=LATER), occurrence("2", State.COMPLETED)]

        report, clean_up = of_kind(planned(split(), *rows), Create)

        assert (report.task_name, report.times.anchor, report.times.anchor_value) == ("report", "end:settle", LATER)
        assert (clean_up.times.anchor, clean_up.times.anchor_value) == ("ended:settle", LATER)
        assert clean_up.times.nominal_at == LATER + timedelta(hours=2)

    def test_have_completed_with_their_task_where_there_are_none(self):
        report, clean_up = of_kind(planned(split()), Create)

        assert report.times.anchor_value == clean_up.times.anchor_value == SPLIT_AT

    @pytest.mark.parametrize("state", UNSUCCESSFUL)
    def test_have_only_ended_if_one_did_not_complete(self, state):
        rows = [occurrence("1", State.COMPLETED), occurrence("2", state, finished_at=LATER, reason_code="error")]

        answer = planned(split(), *rows)

        [clean_up] = of_kind(answer, Create)
        assert (clean_up.task_name, clean_up.times.anchor_value) == ("clean_up", LATER)
        assert answer.foreseen == []

    def test_say_which_one_it_was(self):
        """Of several the first by name, in whatever order they ended."""
        failed = [occurrence(name, State.DISCARDED, reason_code="error") for name in "32"]
        report = Row("report", State.AVAILABLE, anchor="end:settle", anchor_value=DONE_AT, nominal_at=DONE_AT)

        answer = planned(split(), occurrence("1", State.COMPLETED), *failed, report)

        [cancel] = of_kind(answer, Cancel)
        assert cancel.row is report
        assert cancel.why == "settle “2” ended discarded (error)"

    def test_are_waited_for_again_when_one_is_redriven(self):
        failed = occurrence("1", State.DISCARDED, reason_code="error")
        clean_up = Row("clean_up", State.SCHEDULED, anchor="ended:settle", anchor_value=DONE_AT, nominal_at=DONE_AT)

        answer = planned(split(), failed, occurrence("1", revision=2, previous=failed.id), clean_up)

        assert [(cancel.row.task_name, cancel.why) for cancel in of_kind(answer, Cancel)] == [
            ("clean_up", "settle is to run again first")
        ]
        assert [item.task_name for item in answer.foreseen] == ["report", "clean_up"]

    def test_want_nothing_more_once_that_is_carried_out(self):
        rows = [split(), occurrence("1", State.COMPLETED), occurrence("2", State.DISCARDED, reason_code="error")]

        after_it = carry_out(planned(*rows), rows, now=LATER)

        assert {type(change) for change in planned(*after_it).changes} == {Keep}


class TestAChangedDefinition:
    def test_cancels_what_is_fanned_out_no_more(self):
        answer = planned(split(), occurrence("1"), occurrence("2", State.COMPLETED), definition=Plain)

        [cancel] = of_kind(answer, Cancel)
        assert (cancel.row.occurrence, cancel.reason.code) == ("1", ReasonCode.DEFINITION)

    def test_lets_rest_what_it_has_no_more(self):
        answer = planned(split(), occurrence("1"), occurrence("2", State.COMPLETED), definition=Short)

        assert of_kind(answer, Cancel) == []
        assert answer.open

    def test_cancels_what_was_one_and_is_many_now(self):
        one = Row("settle", anchor="end:split", anchor_value=SPLIT_AT, nominal_at=SPLIT_AT)

        answer = planned(split(), one)

        [cancel] = of_kind(answer, Cancel)
        assert cancel.row is one
        assert created(answer) == ["report", "clean_up"]

    def test_makes_again_what_another_version_has_cancelled(self):
        cancelled = [occurrence(name, State.CANCELLED, reason_code=ReasonCode.DEFINITION) for name in "12"]

        answer = planned(split(), *cancelled)

        assert [create.like for create in of_kind(answer, Create)] == cancelled
