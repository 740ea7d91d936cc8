"""A call that may take only so long: whether its time is up, where it hangs, and how it is broken off."""

from __future__ import annotations

import threading
from datetime import timedelta
from time import monotonic

import pytest

from timeline.engine.attempts import begin_attempts
from timeline.worker.timed_call import TimedCall, TimeIsUp, can_be_interrupted, interruptibly


@pytest.fixture
def attempts(crowd, later):
    """Begin an attempt that may take so long: ``attempts(timeout=…)``."""

    def begin(**options):
        [row] = crowd(1, **options)
        return begin_attempts([row.pk], token=None, worker="", now=later, using="default")

    return begin


class TestIsUp:
    def test_is_so_once_it_has_taken_that_long(self, attempts):
        timed = TimedCall(attempts(timeout=timedelta(seconds=3)), since=100.0)

        assert timed.timeout == timedelta(seconds=3)
        assert [timed.is_up(now) for now in (100.0, 102.9, 103.0, 200.0)] == [False, False, True, True]

    def test_is_never_so_without_a_timeout(self, attempts):
        assert not TimedCall(attempts(), since=0.0).is_up(monotonic())


class TestStack:
    def hang_here(self, entered, go_on):
        entered.set()
        go_on.wait(120)

    def test_says_where_a_call_hangs(self):
        calls, entered, go_on = [], threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: (calls.append(TimedCall([])), self.hang_here(entered, go_on)))
        thread.start()
        assert entered.wait(120)

        stack = calls[0].stack()
        go_on.set()
        thread.join()

        assert "in hang_here" in stack
        assert calls[0].stack() == ""

    def test_says_nothing_of_a_coroutine(self):
        assert TimedCall([], cancel=lambda: None).stack() == ""


class TestBreakOff:
    def test_cancels_a_coroutine_and_asks_again_a_second_later(self):
        cancelled = []
        timed = TimedCall([], cancel=lambda: cancelled.append(1))

        timed.break_off(now=100.0)

        assert (cancelled, timed.again_at) == ([1], 101.0)

    def test_interrupts_a_call_on_the_main_thread(self):
        timed = TimedCall([])
        assert timed.in_main

        def call():
            timed.break_off(now=100.0)
            threading.Event().wait(120)

        with pytest.raises(TimeIsUp):
            interruptibly(call, is_time_up=lambda: True)

    def test_leaves_a_call_on_another_thread(self):
        made = []
        thread = threading.Thread(target=lambda: made.append((TimedCall([]), can_be_interrupted())))
        thread.start()
        thread.join()
        [(timed, could)] = made

        timed.break_off(now=100.0)

        assert (timed.in_main, could, timed.again_at) == (False, False, 101.0)
