"""One change of one task: the states that it passes, and when the task is due then."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import Reason, State, Trigger
from timeline.models import ScheduledTask
from timeline.planning import Times
from timeline.store.changes import Write, passed

REASON = Reason.operator("asked for", "ada")


@pytest.fixture
def row(now):
    """A row as it was read, in this state: ``row(State.ACTIVE, …)``."""
    return lambda state=State.SCHEDULED, **columns: ScheduledTask(
        state=state, scheduled_at=now, nominal_at=now, **columns
    )


class TestPassed:
    def test_is_where_it_stands_and_each_state_it_comes_to(self):
        assert passed("scheduled", ()) == (State.SCHEDULED,)
        assert passed("active", (Trigger.RETRY,)) == (State.ACTIVE, State.RETRYABLE)
        assert passed("retryable", (Trigger.DUE, Trigger.START)) == (State.RETRYABLE, State.AVAILABLE, State.ACTIVE)


class TestStates:
    def test_of_a_move_that_is_not_allowed_are_refused_by_the_name_of_the_task(self, row):
        task = row(State.COMPLETED)

        with pytest.raises(TransitionNotAllowed) as refused:
            _ = Write(task=task, triggers=(Trigger.START,)).states

        assert refused.value.task == task.pk


class TestDueAt:
    def test_is_that_of_the_new_times_or_else_the_one_given(self, row, now):
        later = now + timedelta(days=1)
        times = Times(nominal_at=now, scheduled_at=later, anchor="start", anchor_value=now, expires_at=None)

        assert Write(task=row(), times=times, scheduled_at=now).due_at == later
        assert Write(task=row(), scheduled_at=now).due_at == now
        assert Write(task=row()).due_at is None
