"""The interrupt: a call on the main thread is broken off, and nothing else is."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.faults.harness.roles import surroundings
from timeline.worker.timed_call import SIGNAL, TimeIsUp, interrupt, interruptibly

LONG = 60.0  # Seconds: what nobody waits for.


class TestTheInterrupt:
    def test_breaks_off_what_is_called_and_puts_back_what_the_signal_meant(self):
        before = signal.signal(SIGNAL, signal.SIG_IGN)
        try:
            threading.Timer(0.1, interrupt).start()

            with pytest.raises(TimeIsUp):
                interruptibly(lambda: time.sleep(LONG), is_time_up=lambda: True)

            assert signal.getsignal(SIGNAL) == signal.SIG_IGN
        finally:
            signal.signal(SIGNAL, before)

    def test_leaves_a_call_alone_whose_time_is_not_up(self):
        called = []

        interruptibly(lambda: (interrupt(), called.append(1)), is_time_up=lambda: False)

        assert called == [1]

    def test_leaves_alone_what_comes_after_the_call(self):
        """It comes late: what it meant is gone, and so is the call."""
        interruptibly(lambda: None, is_time_up=lambda: True)

        interrupt()

    def test_comes_at_any_moment_and_hits_the_call_or_nothing(self):
        """Sent all the time, it is raised out of the call or not at all: what the signal meant is always put back."""
        ended = subprocess.run(
            [sys.executable, "-m", "tests.worker.interrupting_all_the_time"],
            env={**surroundings(), "DJANGO_SETTINGS_MODULE": "tests.settings"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

        assert ended.returncode == 0, ended.stderr
        outcomes = set(ended.stdout.split())
        assert "raised" in outcomes
        assert outcomes <= {"inside", "raised"}
