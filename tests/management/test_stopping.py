"""The loop of a worker or a poller, as a command runs it."""

import gc
import signal

import pytest

from timeline.management.shared import work_until_stopped


class Turning:
    """Looks, when it works, at what it was given."""

    def work(self):
        self.frozen = gc.get_freeze_count()
        signal.raise_signal(signal.SIGTERM)

    def stop(self):
        self.stopped = True


@pytest.fixture
def loop():
    """A loop that has worked, in a process as it was before."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    loop = Turning()
    work_until_stopped(loop)
    assert {number: signal.getsignal(number) for number in handlers} == handlers
    yield loop
    gc.unfreeze()


def test_stops_at_a_signal(loop):
    assert loop.stopped


def test_does_not_look_through_what_is_loaded_for_garbage(loop):
    """Each look would hold up all tasks, by the tenth of a second where a site is large."""
    assert loop.frozen > 10_000
