"""Outcomes that lag behind are recorded aside; until then their tasks are held."""

from __future__ import annotations

import threading

import pytest

from timeline.engine.running import Watch
from timeline.models import ScheduledTask
from timeline.worker.aside import Aside
from timeline.worker.lagging import Lagging

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]


@pytest.fixture
def aside():
    with Aside("default") as beside:
        yield beside


class TestLeases:
    def test_are_kept_up_until_the_outcome_is_recorded(self, aside):
        class Held(Watch):
            def __init__(self):
                self.tasks = set()

            def entered(self, task):
                self.tasks.add(task.pk)

            def left(self, task):
                self.tasks.discard(task.pk)

        held, go_on = Held(), threading.Event()
        lagging, row = Lagging(held, aside), ScheduledTask()
        lagging.entered(row)

        lagging.settle([row], lambda: (go_on.wait(20), [row])[1])
        lagging.left(row)
        assert held.tasks == {row.pk}

        go_on.set()
        assert lagging.settled() == [row]
        assert held.tasks == set()
