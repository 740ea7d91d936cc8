"""The columns and conditions that tables share: which entity a row names, and dates in range."""

from datetime import UTC, datetime

import pytest

from tests.models.refusing import Refusal
from timeline.lifecycle import State
from timeline.models import Event, ScheduledTask
from timeline.models.entities import NO_ENTITY

# 8999 and 1970 are the last and the first that pass.
OUTSIDE = [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)]
INSIDE = [datetime(1970, 1, 1, tzinfo=UTC), datetime(8999, 12, 31, 23, 59, 59, tzinfo=UTC)]


class TestDates:
    @pytest.mark.parametrize("at", OUTSIDE, ids=str)
    @pytest.mark.parametrize(
        "column",
        ["nominal_at", "scheduled_at", "created_at", "anchor_value", "expires_at", "started_at", "finished_at"],
    )
    def test_of_a_task_must_be_in_range(self, make_task, column, at):
        with Refusal("timeline_task_in_range"):
            make_task(state=State.CANCELLED if column == "finished_at" else State.SCHEDULED, **{column: at})

    @pytest.mark.parametrize("at", INSIDE, ids=str)
    def test_of_a_task_may_be_at_the_ends_of_the_range(self, make_task, at):
        task = make_task(nominal_at=at, created_at=at, anchor_value=at, expires_at=at, started_at=at)

        task.refresh_from_db()
        assert task.scheduled_at == at

    @pytest.mark.parametrize("at", OUTSIDE, ids=str)
    @pytest.mark.parametrize("column", ["started_at", "ended_at"])
    def test_of_a_run_must_be_in_range(self, make_run, column, at):
        with Refusal("timeline_run_in_range"):
            make_run(**{column: at}, end_reason="closed" if column == "ended_at" else "")

    @pytest.mark.parametrize("at", OUTSIDE, ids=str)
    @pytest.mark.parametrize("column", ["occurred_at", "recorded_at"])
    def test_of_an_event_must_be_in_range(self, make_event, column, at):
        with Refusal("timeline_event_in_range"):
            make_event(**{column: at})


class TestEntity:
    @pytest.mark.parametrize("half", [{"entity_label": "testapp.order"}, {"entity_id": "1"}], ids=str)
    def test_must_be_whole(self, make_task, make_run, make_event, half):
        for make, constraint in (
            (make_task, "timeline_task_entity_whole"),
            (make_run, "timeline_run_entity_whole"),
            (make_event, "timeline_event_entity_whole"),
        ):
            with Refusal(constraint):
                make(**half)

    def test_may_be_none_at_all(self, make_task, make_run, make_event):
        assert all(make(entity_label="", entity_id="").pk for make in (make_task, make_run, make_event))


class TestEntityRef:
    def test_names_what_the_row_is_about(self):
        assert ScheduledTask(entity_label="testapp.order", entity_id="7").entity_ref == ("testapp.order", "7")
        assert Event().entity_ref == NO_ENTITY
