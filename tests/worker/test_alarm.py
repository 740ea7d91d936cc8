"""The alarm: wakes one sleeper, from a thread or a signal handler."""

from __future__ import annotations

import signal
import threading

import pytest

from timeline.worker.listener import Alarm


@pytest.fixture
def alarm():
    return Alarm()


class TestAlarm:
    def test_does_not_ring_by_itself(self, alarm):
        assert not alarm.sleep(0.01)

    def test_lets_nobody_fall_asleep_who_was_awake_when_it_rang(self, alarm):
        alarm.ring()

        assert alarm.sleep(600)

    def test_rings_once_however_often_it_was_rung(self, alarm):
        for _ in range(3):
            alarm.ring()

        assert [alarm.sleep(600), alarm.sleep(0)] == [True, False]

    def test_wakes_from_another_thread(self, alarm):
        threading.Timer(0.1, alarm.ring).start()

        assert alarm.sleep(600)

    def test_wakes_from_a_signal_handler_of_the_same_thread(self, alarm):
        before = signal.signal(signal.SIGALRM, lambda *_: alarm.ring())
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            assert alarm.sleep(600)
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_takes_a_time_that_has_passed_for_none(self, alarm):
        assert not alarm.sleep(-1)
