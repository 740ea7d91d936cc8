"""A sleep as people see it: in ``explain``, among the steps of the API, and on the page of a task."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline import Timeline, after, task
from timeline.features.steps.pages import parts_of
from timeline.features.steps.reading import steps_of_task
from timeline.models import ScheduledTask
from timeline.shortcuts import explain, start
from timeline.testing import StoryClock, only_timelines


class Trial(Timeline):
    entity = "testapp.Order"

    @task(after(), atomic=False)
    def care(self, order):
        self.sleep(days=2)
        return "asked"


@pytest.fixture
def clock(db, now):
    with only_timelines(Trial), StoryClock(now) as clock:
        yield clock


@pytest.fixture
def row(clock, order):
    start("trial", order)
    clock.run_due()
    return ScheduledTask.objects.get()


class TestASleep:
    def test_is_explained_with_its_end(self, row, clock):
        told = explain(row)

        assert "It rests until " in told
        assert "sleeps until " in told
        assert "until that comes" not in told
        assert "Sleep 1: since " in told

    def test_is_told_when_it_is_over(self, row, clock):
        clock.advance(days=2, minutes=1)
        row.refresh_from_db()

        assert (row.state, row.result) == ("completed", "asked")
        assert "Sleep 1: ended on " in explain(row)

    def test_has_a_bar_of_its_length(self, row, clock):
        [part] = parts_of(row, steps_of_task(row, using="default"), clock.now + timedelta(hours=5))
        assert part.until - part.at == pytest.approx(timedelta(hours=5), abs=timedelta(minutes=1))

        clock.advance(days=2, minutes=1)
        row.refresh_from_db()
        [part] = parts_of(row, steps_of_task(row, using="default"), clock.now)

        assert part.until - part.at == pytest.approx(timedelta(days=2), abs=timedelta(minutes=2))
