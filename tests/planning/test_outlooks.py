"""How a task stands, and what its followers count from."""

from datetime import timedelta

import pytest

from tests.planning.situations import DAY, NOW, SAID_SOMETHING, START, UNSUCCESSFUL, Row, of_kind, plan_of, summary
from timeline.definition import Timeline, task
from timeline.lifecycle import OPEN, ReasonCode, State
from timeline.planning import Cancel, Create
from timeline.planning.answers import TaskOutlook, outlook_of
from timeline.timing import after

ENDED_AT = NOW + timedelta(hours=5)


class Job(Timeline):
    @task(after())
    def prepare(self): ...

    @task(after(prepare))
    def work(self): ...

    @task(after(work, days=1, ended=True))
    def clean_up(self): ...


def done(name, state=State.COMPLETED, **given):
    """What has ended; all but the first counts from the end of the one before, which was the same moment."""
    since = START if name == "prepare" else ENDED_AT
    return Row(name, state, nominal_at=since, anchor_value=since, finished_at=ENDED_AT, **given)


class Named:
    name = "work"


class TestOutlook:
    def test_gives_who_waits_for_any_end_the_end(self):
        outlook = TaskOutlook(ended_at=ENDED_AT)

        assert outlook.since(after(Named(), ended=True)) == ENDED_AT
        assert outlook.since(after(Named())) is None

    def test_of_what_completed_is_the_same_for_both(self):
        outlook = outlook_of(done("work"))

        assert outlook.since(after(Named(), ended=True)) == outlook.since(after(Named())) == ENDED_AT

    @pytest.mark.parametrize("state", UNSUCCESSFUL)
    def test_says_why_nothing_follows(self, state):
        row = done("work", state, reason_code="error")

        assert outlook_of(row).why_never.text == f"work ended {state} (error)"


class TestWhatFollowsAnyEnd:
    @pytest.mark.parametrize("state", [State.COMPLETED, *UNSUCCESSFUL])
    @pytest.mark.parametrize("reason", [*SAID_SOMETHING, ReasonCode.OPERATOR])
    def test_comes_however_that_ended(self, state, reason):
        answer = plan_of(Job, [done("prepare"), done("work", state, reason_code=reason)])

        [create] = [change for change in of_kind(answer, Create) if change.task_name == "clean_up"]
        assert (create.times.anchor, create.times.anchor_value) == ("ended:work", ENDED_AT)
        assert create.times.nominal_at == ENDED_AT + DAY

    def test_never_comes_where_that_never_does(self):
        """What has no row does not end."""
        answer = plan_of(Job, [done("prepare", State.DISCARDED)])

        assert summary(answer) == [("keep", "prepare")]
        assert not answer.open

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_is_foreseen_until_then(self, state):
        answer = plan_of(Job, [done("prepare"), Row("work", state, nominal_at=ENDED_AT, anchor_value=ENDED_AT)])

        assert [item.task_name for item in answer.foreseen] == ["clean_up"]
        assert of_kind(answer, Cancel) == []

    def test_stands_when_what_was_called_off_by_a_person_has_a_task_before_it_run_again(self):
        rows = [
            done("prepare"),
            Row("prepare", State.AVAILABLE, revision=2, nominal_at=START, anchor_value=START),
            Row("work", State.CANCELLED, finished_at=ENDED_AT, reason_code=ReasonCode.OPERATOR),
            Row("clean_up", nominal_at=ENDED_AT + DAY, anchor_value=ENDED_AT, anchor="ended:work"),
        ]

        assert of_kind(plan_of(Job, rows), Cancel) == []
