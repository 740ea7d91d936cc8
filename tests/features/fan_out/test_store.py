"""Rows of what is fanned out: set-wise, in the place of what was there before; and which kinds are open still."""

from datetime import timedelta

import pytest

from tests.features.fan_out.settlement import row_of, rows_of, settlement, states_of
from tests.testapp.models import Order
from timeline.engine.attempts import begin_attempts
from timeline.features.fan_out.fanned_rows import still_open, write_fanned_out
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.store.transition import Write, apply
from timeline.testing import only_timelines

DONE = Reason(ReasonCode.DONE)


@pytest.fixture
def _known():
    with only_timelines(settlement()):
        yield


@pytest.fixture
def completed(_known, now, later, start_at):
    """Have ``split`` completed in so many runs, and give what completed it: ``completed({"001": {}})``."""

    def complete(payloads, count=1):
        ids = []
        for _ in range(count):
            run = start_at("settlement", Order.objects.create(), now).run
            ids.append(run.tasks.get(task_key="settlement.split").pk)
        begun = begin_attempts(ids, token=None, worker="", now=later, using="default")
        wanted = {"settle": payloads}
        writes = [Write(task=one.task, triggers=(Trigger.COMPLETE,), reason=DONE, fans_out=wanted) for one in begun]
        apply(writes, now=later, using="default")
        return writes

    return complete


def fan_out(writes, at):
    runs = TimelineRun.objects.in_bulk([write.task.run_id for write in writes])
    write_fanned_out(writes, runs, now=at, using="default")


class TestWriteFannedOut:
    def test_writes_a_row_for_each_due_when_its_task_completed(self, completed, later):
        [write] = writes = completed({"b": {"n": 2}, "a": {"n": 1}})

        fan_out(writes, later)

        first, second = rows_of("settle")
        assert [(row.occurrence, row.payload) for row in (first, second)] == [("a", {"n": 1}), ("b", {"n": 2})]
        for row in (first, second):
            assert (row.state, row.scheduled_at, row.created_at) == (State.AVAILABLE, later, later)
            assert (row.anchor, row.anchor_value) == ("each:split", write.task.finished_at)
            assert row.run_id == write.task.run_id
            assert row.entity_ref == write.task.entity_ref

    def test_takes_no_statement_more_for_a_thousand_of_many_runs_than_for_one(self, completed, later, statements_of):
        few = completed({"1": {}})
        many = completed({str(number): {"first": number} for number in range(200)}, count=5)

        asked = statements_of(lambda: fan_out(few, later))
        asked_of_many = statements_of(lambda: fan_out(many, later))

        assert len(rows_of("settle")) == 1_001
        assert len(asked_of_many) == len(asked)

    def test_asks_nothing_where_nothing_is_fanned_out(self, completed, later, statements_of):
        writes = completed({"1": {}})
        plain = [Write(task=write.task, triggers=write.triggers, reason=DONE) for write in writes]
        runs = TimelineRun.objects.in_bulk()

        assert statements_of(lambda: write_fanned_out(plain, runs, now=later, using="default")) == []

    def test_writes_nothing_into_a_run_that_has_ended(self, completed, later):
        writes = completed({"1": {}})
        TimelineRun.objects.update(ended_at=later, end_reason="closed")

        fan_out(writes, later)

        assert rows_of("settle") == []

    def test_makes_the_next_revision_of_what_was_there(self, completed, later):
        writes = completed({"old": {}, "same": {"n": 1}})
        fan_out(writes, later)
        ScheduledTask.objects.filter(task_key="settlement.settle").update(
            state=State.CANCELLED, finished_at=later, reason_code="operator"
        )
        writes[0].fans_out["settle"].clear()
        writes[0].fans_out["settle"].update({"same": {"n": 2}, "new": {}})

        fan_out(writes, later + timedelta(hours=1))

        first = row_of("settle", "old")
        same = ScheduledTask.objects.get(occurrence="same", revision=1)
        again = row_of("settle", "same")
        assert (first.revision, first.state) == (1, State.CANCELLED)
        assert (again.revision, again.previous_id, again.payload, again.state) == (2, same.pk, {"n": 2}, "available")
        assert row_of("settle", "new").revision == 1

    def test_cancels_first_what_is_open_still(self, completed, later):
        """It is not, after a plan; should it be, what is fanned out now is not kept from its place."""
        writes = completed({"1": {}, "2": {}})
        fan_out(writes, later)
        [first, _second] = rows_of("settle")
        begin_attempts([first.pk], token=None, worker="", now=later, using="default")
        writes[0].fans_out["settle"].pop("2")

        fan_out(writes, later + timedelta(hours=1))

        first.refresh_from_db()
        assert (first.state, first.reason) == (State.CANCELLED, "split has fanned out anew")
        assert LogEntry.objects.filter(task=first).latest("seq").from_state == State.ACTIVE
        assert states_of("settle") == {"1": State.AVAILABLE, "2": State.CANCELLED}
        assert (row_of("settle", "1").revision, row_of("settle", "1").previous_id) == (2, first.pk)


class TestStillOpen:
    def test_names_the_kinds_that_have_an_open_row_in_their_run(self, completed, later, now):
        writes = completed({"1": {}, "2": {}}, count=3)
        fan_out(writes, later)
        one, two, three = (write.task.run_id for write in writes)
        ended = {"state": State.CANCELLED, "finished_at": now, "reason_code": "operator"}
        ScheduledTask.objects.filter(run=one, task_key="settlement.settle").update(**ended)
        ScheduledTask.objects.filter(run=two, task_key="settlement.settle", occurrence="1").update(**ended)
        kinds = {(run, f"settlement.{name}") for run in (one, two, three) for name in ("settle", "split", "report")}

        assert still_open(kinds, using="default") == {(two, "settlement.settle"), (three, "settlement.settle")}

    def test_asks_nothing_for_nothing(self, statements_of, db):
        assert statements_of(lambda: still_open(set(), using="default")) == []
