"""Outcomes that are recorded on the side thread; until then their tasks are held."""

from __future__ import annotations

import threading

import pytest

from timeline.engine.groups import Watch
from timeline.models import ScheduledTask
from timeline.worker.pipeline import LateRecorder
from timeline.worker.threads import SideThread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]


@pytest.fixture
def side_thread():
    with SideThread("default") as beside:
        yield beside


class TestLateRecorder:
    def test_passes_on_all_that_a_run_tells_it(self):
        """But whether too many outcomes are kept, which follows from who keeps them."""
        told = {name for name, hook in vars(Watch).items() if callable(hook) and not name.startswith("_")}

        assert told - {"is_full"} <= set(vars(LateRecorder))


class TestAGroup:
    def test_is_counted_anew(self, side_thread):
        late_recorder = LateRecorder(Watch(), side_thread)
        late_recorder.begin(threading.Event())
        late_recorder.took("brief.note", 1, 0.004)
        late_recorder.took("brief.note", 2, 0.004)
        assert late_recorder.ran == 3

        over = late_recorder.begin(threading.Event())
        assert (late_recorder.ran, late_recorder.over) == (0, over)


class TestLeases:
    def test_are_kept_up_until_the_outcome_is_recorded(self, side_thread):
        class Held(Watch):
            def __init__(self):
                self.tasks = set()

            def entered(self, *tasks):
                self.tasks.update(task.pk for task in tasks)

            def left(self, *tasks):
                self.tasks.difference_update(task.pk for task in tasks)

        held, go_on = Held(), threading.Event()
        late_recorder, row = LateRecorder(held, side_thread), ScheduledTask()
        late_recorder.entered(row)

        late_recorder.settle([row], lambda: (go_on.wait(120), [row])[1])
        late_recorder.left(row)
        assert held.tasks == {row.pk}

        go_on.set()
        assert late_recorder.settled() == [row]
        assert held.tasks == set()
