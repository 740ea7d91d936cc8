"""The CHECKs of tasks: that they are short, and let pass what they would at length."""

from datetime import UTC, datetime
from itertools import product

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import CheckConstraint, Q

from timeline.lifecycle import FINAL, LEASED, OPEN, ReasonCode, State
from timeline.models import ScheduledTask

AT = datetime(2026, 3, 1, tzinfo=UTC)


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

        for state, at in product(self.STATES, (None, AT)):
            row = {"state": state, "finished_at": at}
            assert lets_pass(known, row) == lets_pass(ended, row), row

    def test_a_task_has_a_lease_and_a_place_if_it_is_in_hand(self):
        others = set(State) - LEASED
        leased = Q(state__in=LEASED, lease_expires_at__isnull=False) | Q(
            state__in=others, lease_expires_at__isnull=True
        )
        placed = Q(limit_key="") | Q(slot__gt=0) | Q(state__in=others)
        known = known_as("timeline_task_state_known", "timeline_task_held_by_lease", "timeline_task_has_slot")

        for state, at, key, slot in product(self.STATES, (None, AT), ("", "a key"), (0, 1)):
            row = {"state": state, "lease_expires_at": at, "limit_key": key, "slot": slot}
            assert lets_pass(known, row) == lets_pass(leased & placed, row), row

    def test_a_task_that_has_ended_says_why(self):
        reason = Q(reason_code__in=list(ReasonCode)) | Q(reason_code="", state__in=OPEN)
        known = known_as("timeline_task_final_finished", "timeline_task_end_has_reason")

        for state, code in product(State, ("", "done", "until", "of nobody")):
            row = {"state": state, "reason_code": code, "finished_at": AT if state in FINAL else None}
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
