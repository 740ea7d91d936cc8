"""Cancel: call tasks off, all or none, and record why."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import FINAL, OPEN, Reason, State
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.operations.cancelling import cancel
from timeline.operations.moving import move
from timeline.testing import only_timelines

REASON = Reason.operator("trial converted", "ada")


def cancel_all(rows, now):
    return cancel(task_ids=[row.pk for row in rows], reason=REASON, now=now, using="default")


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(after(pack, days=1))
    def ship(self, order):
        return None

    @task(after(days=5))
    def bill(self, order):
        return None


class TestCancel:
    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_ends_the_task_and_logs_why(self, make_task, now, state):
        row = make_task(state=state)

        [cancelled] = cancel_all([row], now)

        row.refresh_from_db()
        assert cancelled == row
        assert (row.state, row.finished_at) == (State.CANCELLED, now)
        assert (row.reason_code, row.reason, row.actor) == ("operator", "trial converted", "ada")
        entry = row.log.get()
        assert (entry.seq, entry.from_state, entry.to_state, entry.at) == (1, state, State.CANCELLED, now)
        assert (entry.reason_code, entry.reason, entry.actor) == ("operator", "trial converted", "ada")

    def test_takes_many_in_the_order_given(self, make_task, now):
        rows = [make_task() for _ in range(5)][::-1]

        assert cancel_all([*rows, rows[0]], now) == rows

    def test_takes_none_at_all(self, db, now):
        assert cancel_all([], now) == []

    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_refuses_what_has_ended_and_changes_nothing(self, make_task, now, state):
        rows = [make_task(), make_task(state=state), make_task()]

        with pytest.raises(TransitionNotAllowed) as refused:
            cancel_all(rows, now)

        assert (refused.value.state, refused.value.task) == (state, rows[1].pk)
        assert ScheduledTask.objects.filter(state=State.SCHEDULED).count() == 2
        assert not LogEntry.objects.exists()

    def test_refuses_an_id_that_is_not_there_and_changes_nothing(self, make_task, now):
        row, gone = make_task(), ScheduledTask(pk=uuid4())

        with pytest.raises(ScheduledTask.DoesNotExist, match=str(gone.pk)):
            cancel_all([row, gone], now)

        row.refresh_from_db()
        assert row.state == State.SCHEDULED

    def test_asks_as_much_for_a_thousand_as_for_ten(self, now, start_at, statements_of):
        asked = []
        with only_timelines(Delivery):
            for count in (10, 1000):
                for order in Order.objects.bulk_create([Order() for _ in range(count)]):
                    start_at("delivery", order, now)
                rows = list(ScheduledTask.objects.filter(state=State.SCHEDULED, task_key="delivery.pack"))
                assert len(rows) == count
                asked.append(statements_of(lambda rows=rows: cancel_all(rows, now)))

        assert asked[0] == asked[1]


class TestCancelInARun:
    @pytest.fixture(autouse=True)
    def _started(self, order, start_at, now):
        with only_timelines(Delivery):
            start_at("delivery", order, now)
            yield

    def test_lets_nothing_follow(self, now):
        cancel_all(ScheduledTask.objects.filter(task_key="delivery.pack"), now)

        assert not ScheduledTask.objects.filter(task_key="delivery.ship").exists()
        assert TimelineRun.objects.get().is_open

    def test_finishes_the_run_of_which_nothing_is_left(self, now):
        cancel_all(ScheduledTask.objects.all(), now)

        assert (TimelineRun.objects.get().end_reason, TimelineRun.objects.get().ended_at) == ("finished", now)

    def test_leaves_what_does_not_hang_on_it(self, now, run_at):
        cancel_all(ScheduledTask.objects.filter(task_key="delivery.pack"), now)

        done = run_at(ScheduledTask.objects.get(task_key="delivery.bill"), now + timedelta(days=5))

        assert done.state == State.COMPLETED
        assert TimelineRun.objects.get().is_finished


class Own(Timeline):
    """Tries to end itself behind its own back."""

    entity = "testapp.Order"

    @task()
    def atomic(self, order):
        cancel(task_ids=[self.task.pk], reason=Reason.operator("me"), now=self.now, using="default")

    @task(atomic=False)
    def plain(self, order):
        move(task_ids=[self.task.pk], at=self.now, reason=Reason.operator("me"), now=self.now, using="default")


class TestOwnTask:
    @pytest.mark.parametrize("name", ["atomic", "plain"])
    def test_is_not_ended_behind_its_back_by_a_handler(self, schedule_at, run_at, order, now, name):
        """The attempt fails, and says what to do instead; the row does not hang."""
        with only_timelines(Own):
            row = schedule_at(f"own.{name}", order, now, now).task

            done = run_at(row, now)

        assert (done.state, done.failures) == (State.RETRYABLE, 1)
        assert "raise Cancel, Discard or RetryAfter instead" in done.error
