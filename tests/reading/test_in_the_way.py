"""What keeps tasks from running, said by features, and left out by whoever takes tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import Count

from timeline import hooks
from timeline.features.holds.verbs import hold
from timeline.hooks import Hindrance
from timeline.lifecycle import State
from timeline.models import ScheduledTask, Scope, TimelineRun
from timeline.reading.in_the_way import asks_in_the_way, in_the_way, told_in_the_way
from timeline.store.multi_query import gather
from timeline.store.task_key_stats import left_out


class Ebb:
    """As a feature says what it keeps: of kinds all tasks whose key begins with a word."""

    parts = frozenset[str]()
    is_any = True

    def __init__(self, using="default"):
        self.using = using

    def covers(self, task_key):
        return task_key.startswith("harbour.")


EBB = Hindrance(
    kept=Ebb,
    in_force=lambda *, using: TimelineRun.objects.using(using).none(),
    words=lambda tasks, found, *, using: {task.pk: "until the tide" for task in tasks if Ebb().covers(task.task_key)},
    told=lambda task, *, people, using: ["The sea is low."] if Ebb().covers(task.task_key) else [],
    end=lambda *, now, using: None,
    next_end=lambda *, now, until, using: None,
    newest=lambda *, most, using: (TimelineRun.objects.using(using).all(), [Count("pk")]),
)


@pytest.fixture
def with_ebb(monkeypatch):
    """A second feature that keeps tasks from running."""
    known = hooks.hooks()
    monkeypatch.setitem(vars(known), "hindrances", (*known.hindrances, EBB))


@pytest.fixture
def held(db, now):
    return hold(
        scope=Scope.TASK, target="trial.remind", until=now + timedelta(hours=1), reason="x", now=now, using="default"
    )


@pytest.fixture
def rows(make_task, held, with_ebb):
    return [make_task(), make_task(task_key="harbour.sail"), make_task(task_key="other.task")]


class TestInTheWay:
    def test_says_what_each_feature_keeps(self, rows):
        said = in_the_way(rows, using="default")

        assert [said.get(row.pk) for row in rows] == ["held until 2026-03-01 10:00 UTC", "until the tide", None]

    def test_asks_nothing_more_with_what_was_read_together(self, rows, django_assert_num_queries):
        with django_assert_num_queries(1):
            found = gather(asks_in_the_way(using="default"), using="default")
        with django_assert_num_queries(0):
            said = in_the_way(rows, found, using="default")

        assert said == in_the_way(rows, using="default")

    @pytest.mark.parametrize("state", [State.ACTIVE, State.COMPLETED])
    def test_keeps_nothing_that_runs_or_has_ended(self, make_task, held, django_assert_num_queries, state):
        with django_assert_num_queries(1):
            task = make_task(state=state)
        with django_assert_num_queries(0):
            assert in_the_way([task], using="default") == {}
            assert list(told_in_the_way(task, people=True, using="default")) == []

    def test_tells_all_about_it(self, rows):
        told = [list(told_in_the_way(row, people=True, using="default")) for row in rows]

        assert [len(lines) for lines in told] == [1, 1, 0]
        assert told[1] == ["The sea is low."]


class TestLeftOut:
    def test_takes_what_nothing_keeps(self, rows):
        keys = [row.task_key for row in rows]

        taken = ScheduledTask.objects.taken_of(keys, left_out(using="default"))

        assert list(taken) == [rows[2]]


class LowWater(Ebb):
    """All is kept, until the tide."""

    def covers(self, task_key):
        return True


class Flood(Ebb):
    """Nothing is kept any more."""

    is_any = False

    def covers(self, task_key):
        return False


class TestStoryTime:
    def test_goes_on_to_the_end_of_what_keeps_a_task(self, clock, make_task, monkeypatch):
        tide, over = clock.now + timedelta(hours=6), []
        water = replace(
            EBB,
            kept=lambda *, using: Flood() if over else LowWater(),
            end=lambda *, now, using: over.append(now) if now >= tide else None,
            next_end=lambda *, now, until, using: tide if now < tide else None,
        )
        monkeypatch.setitem(vars(hooks.hooks()), "hindrances", (water,))
        make_task(scheduled_at=clock.now)

        ran = clock.run_next()

        assert (ran.started_at, clock.now) == (tide, tide)
