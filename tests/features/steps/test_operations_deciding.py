"""Decide what is to become of a task that rests because of a step."""

from datetime import timedelta

import pytest

from timeline import Timeline, after, step, task
from timeline.exceptions import ChangedSince, InvalidInput, NotPlainJSON, TransitionNotAllowed
from timeline.lifecycle import State
from timeline.models import LogEntry, ScheduledTask, StepRecord
from timeline.shortcuts import forget_step, go_on, step_happened
from timeline.testing import only_timelines

DONE = []


class Job(Timeline):
    """Pays, and tells."""

    entity = "testapp.Order"

    @task(after(days=1), atomic=False)
    def work(self, order):
        return [self.pay(order), self.tell()]

    @step(atomic=False, once=True)
    def pay(self, order):
        DONE.append("pay")
        if len(DONE) == 1:
            raise ValueError("no answer")
        return "paid"

    @step(atomic=False)
    def tell(self):
        DONE.append("tell")


class Shorter(Timeline):
    """The same without a step."""

    entity = "testapp.Order"
    name = "job"

    @task(after(days=1), atomic=False)
    def work(self, order):
        DONE.append("all of it")


@pytest.fixture(autouse=True)
def nothing_done():
    DONE.clear()


@pytest.fixture
def resting(order, now, later, start_at, run_at):
    """A task of which nobody knows whether it has paid."""
    with only_timelines(Job):
        start_at("job", order, now)
        row = ScheduledTask.objects.get()
        run_at(row, later)
        row.refresh_from_db()
        row = run_at(row, row.scheduled_at)
        assert row.reason_code == "in_doubt"
        yield row


@pytest.fixture
def goes_on(run_at):
    def run(row):
        row.refresh_from_db()
        assert row.state == State.AVAILABLE
        return run_at(row, row.scheduled_at + timedelta(days=1))

    return run


class TestItHappened:
    def test_so_it_is_not_done_again(self, resting, goes_on):
        step_happened(resting, "pay", {"receipt": 7}, reason="the bank says so", actor="ada")

        done = goes_on(resting)

        assert (done.state, done.result) == (State.COMPLETED, [{"receipt": 7}, None])
        assert DONE == ["pay", "tell"]
        entry = LogEntry.objects.get(reason="the bank says so")
        assert (entry.actor, entry.to_state) == ("ada", "available")

    @pytest.mark.parametrize(
        ("name", "result", "error", "said"),
        [
            ("paid", None, InvalidInput, "step: 'paid' is not recorded. Recorded are: pay."),
            ("pay", {1, 2}, NotPlainJSON, "result"),
        ],
    )
    def test_has_to_make_sense(self, resting, name, result, error, said):
        with pytest.raises(error) as raised:
            step_happened(resting, name, result, reason="x")

        assert str(raised.value).startswith(said)
        assert StepRecord.objects.get().kind == "begun"
        resting.refresh_from_db()
        assert resting.state == State.RETRYABLE

    def test_is_said_once(self, resting):
        StepRecord.objects.update(kind="done")

        with pytest.raises(InvalidInput, match="pay is not in doubt"):
            step_happened(resting, "pay", reason="x")

    def test_is_refused_where_it_was_decided_meanwhile(self, resting):
        seen = {resting.pk: resting.seq}
        forget_step(resting, "pay", reason="it did not", seen=seen)

        with pytest.raises(ChangedSince):
            step_happened(resting, "pay", reason="it did", seen=seen)

        with pytest.raises(TransitionNotAllowed):
            step_happened(resting, "pay", reason="it did")


class TestForgotten:
    def test_is_done_again(self, resting, goes_on):
        forget_step(resting, "pay", reason="the bank knows nothing of it")

        assert goes_on(resting).result == ["paid", None]
        assert DONE == ["pay", "pay", "tell"]


class TestGoOn:
    def test_is_nothing_to_say_of_a_task_without_steps(self, order, now, start_at):
        with only_timelines(Job):
            start_at("job", order, now)
            with pytest.raises(InvalidInput, match="has no step that is done or begun"):
                go_on(ScheduledTask.objects.get(), reason="x")

            assert ScheduledTask.objects.get().state == State.SCHEDULED

    def test_is_no_answer_to_whether_it_happened(self, resting):
        with pytest.raises(InvalidInput, match=r"pay may have happened\. Say that it happened, or forget it\."):
            go_on(resting, reason="never mind")

    def test_lets_other_code_count_what_is_done(self, resting, goes_on, run_at):
        step_happened(resting, "pay", reason="it did")
        with only_timelines(Shorter):
            rests = goes_on(resting)
            assert (rests.state, rests.reason_code) == (State.RETRYABLE, "definition")

            go_on(resting, reason="there is nothing to pay any more")

            assert goes_on(resting).state == State.COMPLETED
        assert DONE == ["pay", "all of it"]
