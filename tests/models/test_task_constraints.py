"""What the database refuses of tasks by itself: CHECKs and unique keys, one broken at a time."""

import pytest

from tests.models.refusing import Refusal
from timeline.lifecycle import FINAL, LEASED, OPEN, ReasonCode, State


class TestState:
    def test_must_be_known(self, make_task):
        # It breaks several rules; SQLite names this one first.
        with Refusal("timeline_task_", "timeline_task_state_known"):
            make_task(state="asleep", reason_code="operator")

    @pytest.mark.parametrize("state", State)
    def test_may_be_any_of_the_table(self, make_task, state):
        assert make_task(state=state).pk


class TestFinishedAt:
    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_must_be_there_at_the_end(self, make_task, state):
        with Refusal("timeline_task_final_finished"):
            make_task(state=state, finished_at=None)

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_must_not_be_there_before(self, make_task, now, state):
        with Refusal("timeline_task_final_finished"):
            make_task(state=state, finished_at=now, reason_code="done")


class TestLease:
    @pytest.mark.parametrize("state", sorted(LEASED))
    def test_must_be_there_while_the_task_is_held(self, make_task, state):
        with Refusal("timeline_task_held_by_lease"):
            make_task(state=state, lease_expires_at=None)

    @pytest.mark.parametrize("state", sorted(set(State) - LEASED))
    def test_must_not_be_there_otherwise(self, make_task, now, state):
        with Refusal("timeline_task_held_by_lease"):
            make_task(state=state, lease_expires_at=now)


class TestReasonCode:
    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_must_be_there_at_the_end(self, make_task, state):
        with Refusal("timeline_task_end_has_reason"):
            make_task(state=state, reason_code="")

    @pytest.mark.parametrize("state", State)
    def test_must_be_of_the_closed_set(self, make_task, state):
        with Refusal("timeline_task_end_has_reason"):
            make_task(state=state, reason_code="whim")

    @pytest.mark.parametrize("code", ReasonCode)
    def test_may_be_any_of_the_set(self, make_task, code):
        assert make_task(state=State.CANCELLED, reason_code=code).pk


class TestTasksOfARun:
    def test_are_one_for_each_revision(self, make_run, make_task, named):
        run = make_run(**named)
        make_task(run=run, occurrence="1", state=State.CANCELLED, **named)

        with Refusal("timeline_task_revision", r"UNIQUE.*run_id.*revision$"):
            make_task(run=run, occurrence="1", state=State.CANCELLED, **named)

    def test_are_open_in_one_revision_at_most(self, make_run, make_task, named):
        run = make_run(**named)
        make_task(run=run, occurrence="1", **named)

        with Refusal("timeline_task_one_open", r"UNIQUE.*run_id.*occurrence$"):
            make_task(run=run, occurrence="1", revision=2, state=State.RETRYABLE, **named)
        assert make_task(run=run, occurrence="1", revision=2, state=State.CANCELLED, **named).pk

    @pytest.mark.parametrize("other", [{"occurrence": "2"}, {"task_key": "trial.expire"}, {"run": True}], ids=str)
    def test_may_be_many_otherwise(self, make_run, make_task, named, other):
        columns = {"run": make_run(**named), "occurrence": "1", **named}
        make_task(**columns)
        if other.pop("run", False):
            other["run"] = make_run(key="second", **named)

        assert make_task(**columns | other).pk


class TestAdHocTasks:
    def test_are_one_for_each_revision(self, make_task, named):
        make_task(occurrence="k", state=State.COMPLETED, **named)

        with Refusal("timeline_adhoc_revision", r"UNIQUE.*entity_label.*revision$"):
            make_task(occurrence="k", state=State.CANCELLED, **named)

    def test_are_open_in_one_revision_at_most(self, make_task, named):
        make_task(occurrence="k", state=State.PENDING, **named)

        with Refusal("timeline_adhoc_one_open", r"UNIQUE.*entity_label.*occurrence$"):
            make_task(occurrence="k", revision=2, **named)

    @pytest.mark.parametrize(
        "other", [{"occurrence": "l"}, {"task_key": "trial.expire"}, {"entity_id": "another"}], ids=str
    )
    def test_may_be_many_otherwise(self, make_task, named, other):
        columns = {"occurrence": "k", **named}
        make_task(**columns)

        assert make_task(**columns | other).pk

    def test_are_not_those_of_a_run(self, make_run, make_task, named):
        make_task(run=make_run(**named), occurrence="k", **named)

        assert make_task(occurrence="k", **named).pk

    def test_of_no_entity_are_kept_apart_too(self, make_task):
        make_task(occurrence="k")

        with Refusal("timeline_adhoc_", r"UNIQUE.*entity_label.*"):
            make_task(occurrence="k")
