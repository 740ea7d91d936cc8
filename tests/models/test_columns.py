"""The columns and conditions that tables share: which entity a row names, and dates in range."""

from datetime import UTC, datetime
from itertools import product

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import CheckConstraint, Q

from tests.models.refusing import Refusal
from timeline.lifecycle import FINAL, LEASED, OPEN, ReasonCode, State
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


def lets_pass(condition, row):
    """Whether the condition of a CHECK of tasks holds for a row with these columns."""
    try:
        CheckConstraint(condition=condition, name="asked").validate(ScheduledTask, ScheduledTask(**row))
    except ValidationError:
        return False
    return True


def known_as(*names):
    """The conditions of some CHECKs of tasks."""
    return Q(*(known.condition for known in ScheduledTask._meta.constraints if known.name in names))


@pytest.mark.django_db
class TestShortConditions:
    """What the CHECKs of tasks let pass, as it would be said at length."""

    STATES = [*State, "gone"]

    def test_a_task_has_ended_at_some_time_if_it_has_ended(self):
        ended = Q(state__in=FINAL, finished_at__isnull=False) | Q(state__in=OPEN, finished_at__isnull=True)
        known = known_as("timeline_task_state_known", "timeline_task_final_finished")

        for state, at in product(self.STATES, (None, INSIDE[0])):
            row = {"state": state, "finished_at": at}
            assert lets_pass(known, row) == lets_pass(ended, row), row

    def test_a_task_has_a_lease_and_a_place_if_it_is_in_hand(self):
        others = set(State) - LEASED
        leased = Q(state__in=LEASED, lease_expires_at__isnull=False) | Q(
            state__in=others, lease_expires_at__isnull=True
        )
        placed = Q(limit_key="") | Q(slot__gt=0) | Q(state__in=others)
        known = known_as("timeline_task_state_known", "timeline_task_held_by_lease", "timeline_task_has_slot")

        for state, at, key, slot in product(self.STATES, (None, INSIDE[0]), ("", "a key"), (0, 1)):
            row = {"state": state, "lease_expires_at": at, "limit_key": key, "slot": slot}
            assert lets_pass(known, row) == lets_pass(leased & placed, row), row

    def test_a_task_that_has_ended_says_why(self):
        reason = Q(reason_code__in=list(ReasonCode)) | Q(reason_code="", state__in=OPEN)
        known = known_as("timeline_task_final_finished", "timeline_task_end_has_reason")

        for state, code in product(State, ("", "done", "until", "of nobody")):
            row = {"state": state, "reason_code": code, "finished_at": INSIDE[0] if state in FINAL else None}
            assert lets_pass(known, row) == lets_pass(reason, row), row

    @pytest.mark.only_postgresql
    def test_are_short(self):
        """PostgreSQL reads what it keeps of them for each statement that writes a task; at length it were 30,000 signs."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT sum(length(conbin::text)) FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass",
                [ScheduledTask._meta.db_table],
            )
            [length] = cursor.fetchone()

        assert length < 17_000
