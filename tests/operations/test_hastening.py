"""Run now: make waiting tasks due at once."""

from datetime import timedelta
from uuid import uuid4

import pytest

from timeline import Timeline, after, task
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import WAITING, Reason, State
from timeline.models import LogEntry, ScheduledTask
from timeline.operations.move import run_now
from timeline.operations.reconcile import reconcile
from timeline.testing import only_timelines

REASON = Reason.operator("cannot wait", "ada")


def hasten(rows, now):
    return run_now(task_ids=[row.pk for row in rows], reason=REASON, now=now, using="default")


class TestRunNow:
    @pytest.mark.parametrize("state", sorted(WAITING))
    def test_makes_a_waiting_task_available(self, make_task, now, later, state):
        row = make_task(state=state, scheduled_at=later, nominal_at=later)

        [hastened] = hasten([row], now)

        row.refresh_from_db()
        assert hastened == row
        assert (row.state, row.scheduled_at, row.nominal_at) == (State.AVAILABLE, now, later)
        entry = row.log.get()
        assert (entry.from_state, entry.reason_code, entry.actor) == (state, "operator", "ada")

    def test_leaves_the_time_of_one_that_was_due_before(self, make_task, now):
        row = make_task(scheduled_at=now - timedelta(hours=1))

        hasten([row], now)

        row.refresh_from_db()
        assert row.scheduled_at == now - timedelta(hours=1)

    def test_takes_many_in_the_order_given(self, make_task, now):
        rows = [make_task() for _ in range(4)][::-1]

        assert hasten(rows, now) == rows

    @pytest.mark.parametrize("state", sorted(set(State) - WAITING))
    def test_refuses_what_does_not_wait_and_changes_nothing(self, make_task, now, state):
        waiting, other = make_task(), make_task(state=state)

        with pytest.raises(TransitionNotAllowed) as refused:
            hasten([waiting, other], now)

        assert refused.value.task == other.pk
        waiting.refresh_from_db()
        assert waiting.state == State.SCHEDULED
        assert not LogEntry.objects.exists()

    def test_refuses_an_id_that_is_not_there_and_changes_nothing(self, make_task, now):
        waiting = make_task()

        with pytest.raises(ScheduledTask.DoesNotExist):
            hasten([waiting, ScheduledTask(pk=uuid4())], now)

        waiting.refresh_from_db()
        assert waiting.state == State.SCHEDULED


class TestAHastenedTaskOfARun:
    @pytest.fixture
    def hastened(self, order, start_at, now):
        class Delivery(Timeline):
            entity = "testapp.Order"

            @task(after(days=5), unless=lambda order: order.paid)
            def ask(self, order):
                return None

        with only_timelines(Delivery):
            start_at("delivery", order, now)
            [row] = hasten(ScheduledTask.objects.all(), now)
            yield row

    def test_is_left_so_by_reconcile(self, hastened, order, now, run_at):
        reconcile(entity=order, now=now, using="default")

        assert ScheduledTask.objects.get().state == State.AVAILABLE
        assert run_at(hastened, now).state == State.COMPLETED

    def test_has_its_guard_read_all_the_same(self, hastened, order, now, run_at):
        order.paid = True
        order.save()

        assert run_at(hastened, now).reason_code == "guard"
