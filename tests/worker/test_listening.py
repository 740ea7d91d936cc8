"""Listening within the process, which every database can. What others announce: tests/postgresql/test_listening.py."""

from __future__ import annotations

import pytest

from timeline.signals import work_due, work_soon
from timeline.worker.listener import Alarm, Listener

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alarm():
    return Alarm()


@pytest.fixture
def listener(alarm):
    """Listens to nobody but its own process any more: the first ring is over."""
    listener = Listener("default", alarm)
    with listener:
        alarm.sleep(2)
        yield listener


class TestListener:
    @pytest.mark.parametrize("signal", [work_due, work_soon])
    def test_rings_when_this_process_announces_something(self, listener, alarm, signal):
        signal.send(sender=None, using="default")

        assert alarm.sleep(0)

    def test_does_not_mind_other_databases(self, listener, alarm):
        work_due.send(sender=None, using="other")

        assert not alarm.sleep(0)

    def test_hears_nothing_when_it_is_over(self, alarm):
        with Listener("default", alarm):
            pass
        alarm.sleep(0)

        work_due.send(sender=None, using="default")

        assert not alarm.sleep(0)
