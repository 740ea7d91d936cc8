"""What one thread has begun: the thread enters it, or the supervisor gives it back."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic

import pytest

from timeline.engine.groups import Watch, begin_given
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import cancel
from timeline.worker.thread_watch import PATIENCE, ThreadWatch


@pytest.fixture
def tell(later):
    """Tells story time."""
    return lambda: later


@pytest.fixture
def begun(crowd, later):
    """Begin five tasks of a kind together, each of an order of its own."""
    rows = crowd(5, atomic=False, ad_hoc=True)
    [attempts] = begin_given(task_ids=[row.pk for row in rows], clock=lambda: later, using="default")
    assert len(attempts) == 5
    return attempts


class TestTheThreadWatch:
    def test_gives_each_attempt_to_one_of_two(self, begun, tell):
        """To whoever takes it first: the thread, or the supervisor."""
        attempts = begun
        thread_watch = ThreadWatch(Watch(), clock=tell, using="default")
        thread_watch.line_up(attempts)
        assert thread_watch.take(attempts[0])

        assert thread_watch.see_to(now=float("inf"))

        assert not any(thread_watch.take(attempt) for attempt in attempts[1:])
        assert thread_watch.remaining(attempts) == attempts[:1]
        rows = ScheduledTask.objects.filter(state=State.RETRYABLE)
        assert set(rows) == {attempt.task for attempt in attempts[1:]}

    def test_gives_back_what_the_thread_was_about_to_end_when_its_transaction_was_undone(self, begun, tell):
        attempts = begun
        for attempt in attempts:
            attempt.task.state = State.COMPLETED  # As its thread has it until it learns that nothing of that is kept.
        watch = ThreadWatch(Watch(), clock=tell, using="default")
        watch.line_up(attempts)

        assert watch.see_to(now=float("inf"))

        assert not watch.owes
        assert ScheduledTask.objects.filter(state=State.RETRYABLE).count() == 5

    def test_is_patient_while_the_thread_gets_on(self, begun, tell):
        attempts = begun
        thread_watch = ThreadWatch(Watch(), clock=tell, using="default")
        thread_watch.line_up(attempts)

        assert not thread_watch.see_to(now=thread_watch._since + 0.1)

        assert all(thread_watch.take(attempt) for attempt in attempts)

    def test_gives_back_nothing_that_was_called_off(self, begun, tell):
        attempts = begun
        cancel(attempts[3].task, reason="not this one")
        thread_watch = ThreadWatch(Watch(), clock=tell, using="default")
        thread_watch.line_up(attempts)

        thread_watch.see_to(now=float("inf"))

        assert ScheduledTask.objects.get(pk=attempts[3].task.pk).state == "cancelled"
        assert not thread_watch.owes


class TestAThreadThatIsGone:
    def test_is_over_once_it_owes_nothing(self, begun, tell):
        thread_watch = ThreadWatch(Watch(), clock=tell, using="default")
        thread_watch.line_up(begun)
        assert not thread_watch.is_over(monotonic())

        thread_watch.abandon()
        thread_watch.close()

        assert thread_watch.owes
        assert not thread_watch.is_over(monotonic())
        thread_watch.see_to(now=float("inf"))
        assert thread_watch.is_over(monotonic())
        assert {row.reason_code for row in ScheduledTask.objects.all()} == {"released"}

    def test_is_over_when_what_it_owes_has_run_out_by_itself(self, begun, tell, settings):
        settings.TIMELINE = {"LEASE": timedelta(seconds=90)}
        thread_watch = ThreadWatch(Watch(), clock=tell, using="default")
        thread_watch.line_up(begun)
        thread_watch.abandon()
        thread_watch.close()

        assert not thread_watch.is_over(monotonic() + 80)
        assert thread_watch.is_over(monotonic() + 100)


class TestALookThatIsUnderWay:
    def test_is_waited_for_as_long_as_a_lease(self, begun, tell):
        thread_watch = ThreadWatch(Watch(), clock=tell, using="default")
        thread_watch.line_up(begun)

        with thread_watch.looking():
            assert not thread_watch.see_to(now=monotonic() + 2 * PATIENCE)
        assert thread_watch.see_to(now=monotonic() + 2 * PATIENCE)


class TestACallThatTakesTooLong:
    def test_is_none_while_its_time_is_not_up(self, begun, tell):
        thread_watch = ThreadWatch(Watch(), clock=tell, using="default")

        assert thread_watch.call(begun[:1], lambda: "answer") == "answer"
        assert thread_watch.is_in_time(begun[0])
