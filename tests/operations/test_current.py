"""Which task is being run right now, and that its handler does not end it behind its own back."""

from contextvars import copy_context
from uuid import UUID

import pytest

from timeline import Timeline, task
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask
from timeline.operations.cancel import cancel
from timeline.operations.current import now_running, refuse_own, running
from timeline.operations.move import move
from timeline.testing import only_timelines

ONE, TWO = UUID(int=1), UUID(int=2)


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


class TestRunning:
    def test_is_nothing_outside_of_a_run(self):
        assert running() == frozenset()

    def test_is_what_was_marked_last_and_only_in_that_context(self):
        def handler():
            now_running(ONE)
            now_running(TWO)
            return running()

        assert copy_context().run(handler) == {TWO}
        assert running() == frozenset()


class TestRefuseOwn:
    def test_refuses_the_task_that_is_being_run_and_no_other(self):
        own, other = ScheduledTask(pk=ONE, state=State.ACTIVE), ScheduledTask(pk=TWO, state=State.ACTIVE)

        def handler():
            now_running(ONE)
            refuse_own([other], "cancel")
            with pytest.raises(TransitionNotAllowed) as refused:
                refuse_own([other, own], "cancel")
            return refused.value

        error = copy_context().run(handler)
        assert (error.task, error.state, error.trigger) == (ONE, State.ACTIVE, "cancel")
        refuse_own([own, other], "cancel")
