"""What is kept until it can be written: tried until it is over, and let go of then."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from tests.processes import wait_for
from timeline.clocks import MachineTime
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.worker import outcome_keeper
from timeline.worker.outcome_keeper import OutcomeKeeper

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def keeper():
    made = OutcomeKeeper("default")
    yield made
    made.close()


def never():
    return False


class TestKeep:
    def test_tries_until_it_is_over(self, keeper, make_task):
        tries, over = [], threading.Event()

        def again():
            tries.append(1)
            if len(tries) == 3:
                over.set()
            return over.is_set()

        keeper.keep(make_task(state=State.ACTIVE), again)

        assert over.wait(120)
        keeper.close()
        assert len(tries) == 3

    def test_goes_on_after_an_error_of_a_try(self, keeper, make_task, caplog):
        """The others need it: their leases would run out, and their handlers be entered again."""
        over, failures = threading.Event(), [LookupError("a mistake of ours")]

        def again():
            if failures:
                raise failures.pop()
            over.set()
            return True

        keeper.keep(make_task(state=State.ACTIVE), again)

        assert over.wait(120)
        assert "a mistake of ours" in caplog.text

    def test_begins_anew_when_nothing_was_left(self, keeper, make_task):
        for _ in range(2):
            over = threading.Event()
            keeper.keep(make_task(state=State.ACTIVE), lambda over=over: over.set() or True)
            assert over.wait(120)
            wait_for(lambda: keeper._thread is None, "the end of the thread")

    def test_keeps_up_the_lease_until_then(self, keeper, make_task, settings):
        settings.TIMELINE = {"LEASE": timedelta(milliseconds=300)}
        task, over = make_task(state=State.ACTIVE, attempt=1), threading.Event()
        ScheduledTask.objects.update(lease_expires_at=MachineTime(timedelta(milliseconds=250)))
        before = ScheduledTask.objects.get().lease_expires_at

        keeper.keep(task, over.is_set)

        wait_for(lambda: ScheduledTask.objects.get().lease_expires_at > before, "a beat")
        over.set()
        wait_for(ScheduledTask.objects.given_up().exists, "the end of the lease")


class TestMakeRoom:
    def test_waits_until_there_is_some(self, keeper, make_task, monkeypatch):
        monkeypatch.setattr(outcome_keeper, "MAX_KEPT", 1)
        waited, over = threading.Event(), threading.Event()
        assert not keeper.make_room(bool)

        keeper.keep(make_task(state=State.ACTIVE), over.is_set)

        thread = threading.Thread(target=lambda: keeper.make_room(bool) and waited.set())
        thread.start()
        assert not waited.wait(0.3)
        over.set()
        assert waited.wait(120)
        thread.join()

    def test_does_not_wait_if_it_is_time_to_stop(self, keeper, make_task, monkeypatch):
        monkeypatch.setattr(outcome_keeper, "MAX_KEPT", 1)
        monkeypatch.setattr(outcome_keeper, "LAST_TRIES", 0.1)
        keeper.keep(make_task(state=State.ACTIVE), never)

        assert keeper.make_room(lambda: True)


class TestClose:
    def test_names_what_it_leaves(self, keeper, make_task, monkeypatch, caplog):
        monkeypatch.setattr(outcome_keeper, "LAST_TRIES", 0.1)
        task = make_task(state=State.ACTIVE)
        keeper.keep(task, never)

        keeper.close()

        assert f"will run again: {task.pk}" in caplog.text
