"""Two real workers at once on one database: each effect happens once; and none is lost when one of them is killed."""

from __future__ import annotations

import signal
from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.processes import let_be_dead, wait_for
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule

pytestmark = pytest.mark.django_db(transaction=True)

TASKS = 400
MOST = 30  # So many times as many, until the second of two workers has begun.


def make_due(order, name=""):
    """Have so many tasks due; gives their ids."""
    at = timezone.now() - timedelta(seconds=1)
    keys = [f"{name}{number}" for number in range(TASKS)]
    return {str(schedule("crash_case.note", order, at=at, key=key).task.pk) for key in keys}


@pytest.fixture
def due(order):
    """So many tasks that are due."""
    return make_due(order)


def shares():
    """Who has run any."""
    return {name.partition(":")[0] for name in ScheduledTask.objects.values_list("worker", flat=True)}


def all_done():
    return not ScheduledTask.objects.open().exists()


class TestTwoWorkers:
    def test_enter_each_handler_once(self, order, due, workers, tmp_path):
        """Whoever comes late finds some more to do."""
        workers("first")
        workers("second")

        wait_for(all_done, "the end of all tasks")
        more = 0
        while len(shares()) < 2 and (more := more + 1) < MOST:
            due |= make_due(order, f"{more} ")
            wait_for(all_done, "the end of all tasks")
        lines = (tmp_path / "notes").read_text().splitlines()
        assert Counter(line.split()[0] for line in lines) == dict.fromkeys(due, 1)
        assert shares() == {"first", "second"}
        assert set(ScheduledTask.objects.values_list("state", "attempt")) == {("completed", 1)}

    def test_lose_nothing_when_one_is_killed(self, due, workers, tmp_path):
        """What the dead one was in the middle of, a group of 50 ms at most, is entered again, and told so."""
        victim = workers("victim")
        workers("survivor")
        wait_for((tmp_path / "notes").exists, "the first effect")
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        let_be_dead(worker__startswith="victim:")

        wait_for(all_done, "the end of all tasks")
        lines = (tmp_path / "notes").read_text().splitlines()
        entered = Counter(line.split()[0] for line in lines)
        assert set(entered) == due
        twice = [task_id for task_id, count in entered.items() if count > 1]
        assert len(twice) <= 50 / 3 + 1  # Each of them takes 3 ms.
        assert [f"{task_id} True" in lines for task_id in twice] == [True] * len(twice)
        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
