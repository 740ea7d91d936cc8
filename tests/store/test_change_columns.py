"""Changes of tasks, as the statement that makes them reads them."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import uuid4

import pytest

from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import ScheduledTask
from timeline.planning import Times
from timeline.store.changes import MAX_ACTOR, MAX_REASON, Write, as_changes, columns_of, seconds

REASON = Reason.operator("asked for", "ada")


@pytest.fixture
def row(now):
    """A row as it was read, in this state: ``row(State.ACTIVE, …)``."""
    return lambda state=State.SCHEDULED, **columns: ScheduledTask(
        state=state, scheduled_at=now, nominal_at=now, **columns
    )


def change_of(task, *triggers, **given):
    [change] = as_changes([Write(task=task, triggers=triggers, **given)], using="default")
    return change


class TestAsChanges:
    def test_leaves_out_what_stays(self, row):
        change = change_of(row(attempt=3), Trigger.DUE)

        assert change.keys() == {"id", "from_state", "to_state", "from_attempt"}
        assert (change["from_state"], change["to_state"], change["from_attempt"]) == ("scheduled", "available", 3)

    def test_names_the_state_between_two_moves(self, row):
        assert change_of(row(), Trigger.DUE, Trigger.START)["via"] == "available"

    @pytest.mark.parametrize(
        ("given", "lease"), [({}, "+90.000 seconds"), ({"lease": timedelta(seconds=2)}, "+2.000 seconds")]
    )
    def test_gives_what_is_held_a_lease(self, row, settings, given, lease):
        settings.TIMELINE = {"LEASE": timedelta(seconds=90)}

        assert change_of(row(State.AVAILABLE), Trigger.CLAIM, **given)["lease"] == lease
        assert "lease" not in change_of(row(State.ACTIVE), Trigger.RETRY, **given)

    def test_writes_the_worker_though_it_has_no_name(self, row):
        assert change_of(row(State.AVAILABLE), Trigger.START, worker="")["worker"] == ""
        assert "worker" not in change_of(row(State.AVAILABLE), Trigger.START)

    def test_writes_counts_only_where_they_grow(self, row):
        change = change_of(row(State.ACTIVE), Trigger.RETRY, failures=1, lost=0)

        assert (change["failures"], "lost" in change) == (1, False)

    def test_tells_the_log_of_a_time_that_becomes_another(self, row, now):
        later = now + timedelta(hours=1)

        assert json.loads(change_of(row(), scheduled_at=later)["detail"]) == {
            "scheduled_at": later.isoformat(),
            "scheduled_at_before": now.isoformat(),
        }
        assert "detail" not in change_of(row(), scheduled_at=now)

    def test_tells_the_log_of_error_evidence_and_what_was_said(self, row):
        error = {"class": "ValueError", "message": "boom", "traceback": "…"}
        reason = Reason(ReasonCode.ERROR, "boom", said={"name": "x"})

        change = change_of(row(State.ACTIVE), Trigger.RETRY, error=error, reason=reason, evidence={"passing": 2})

        assert change["error"] == "ValueError: boom"
        assert json.loads(change["detail"]) == {"error": error, "passing": 2, "said": {"name": "x"}}

    def test_writes_values_as_plain_json(self, row, now):
        times = Times(
            nominal_at=now,
            scheduled_at=now,
            anchor="field:due_on",
            anchor_value=now,
            expires_at=None,
            anchor_date=now.date(),
        )

        change = change_of(row(), Trigger.DUE, times=times, claim_token=uuid4())

        assert json.loads(json.dumps(change)) == change
        assert (change["anchor"], change["anchor_date"]) == ("field:due_on", "2026-03-01")
        assert "expires_at" not in change


class TestColumnsOf:
    def test_are_cut_to_what_the_columns_hold(self):
        columns = columns_of(Reason(ReasonCode.OPERATOR, "x" * 999, "y" * 999))

        assert columns["reason_code"] == "operator"
        assert (len(columns["reason"]), len(columns["actor"])) == (MAX_REASON, MAX_ACTOR)


class TestSeconds:
    @pytest.mark.parametrize(
        ("length", "text"),
        [(timedelta(milliseconds=500), "+0.500 seconds"), (timedelta(minutes=-1), "-60.000 seconds")],
    )
    def test_are_written_with_their_sign_as_both_databases_read_them(self, length, text):
        assert seconds(length) == text
