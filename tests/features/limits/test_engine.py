from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Limit, Timeline, task
from timeline.features.limits.claims import begin_limited
from timeline.features.limits.places import leave_turn, limited_kinds
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)


class Narrow(Timeline):
    entity = "testapp.Order"

    @task(limit=Limit(3, by="note"), atomic=False)
    def call(self, order): ...

    @task(limit=3, atomic=False)
    async def side_by_side(self, order): ...


@pytest.fixture(autouse=True)
def known():
    for name in ("call", "side_by_side"):
        leave_turn(f"narrow.{name}", "", using="default")
    with only_timelines(Narrow):
        yield


@pytest.fixture
def waiting(now):
    def made(name, *notes):
        return [
            schedule(f"narrow.{name}", Order.objects.create(note=note), at=now - timedelta(seconds=99 - number)).task
            for number, note in enumerate(notes)
        ]

    return made


@pytest.fixture
def begin(now):
    def begun(name, most=10, **options):
        return [
            attempt.task.pk
            for kind in limited_kinds([f"narrow.{name}"], using="default")
            for attempt in begin_limited(kind, most=most, worker="w", now=now, using="default", **options)
        ]

    return begun


class TestBeginLimited:
    def test_one_of_each_key(self, waiting, begin):
        first, _second, other = waiting("call", "a", "a", "b")

        assert sorted(begin("call")) == sorted([first.pk, other.pk])

    def test_of_what_runs_side_by_side_as_many_as_there_are_places(self, waiting, begin):
        rows = waiting("side_by_side", *"aaaaa")

        assert begin("side_by_side") == [row.pk for row in rows[:3]]
        assert begin("side_by_side") == []

    def test_one_that_was_tried_before_alone_when_its_key_is_first(self, waiting, begin):
        first, tried, last = waiting("call", "a", "b", "c")
        ScheduledTask.objects.filter(pk=tried.pk).update(attempt=1)

        assert [begin("call"), begin("call"), begin("call")] == [[first.pk], [tried.pk], [last.pk]]

    def test_none_that_was_tried_before_while_others_run(self, waiting, begin):
        [tried, *_others] = waiting("call", "a", "b")
        ScheduledTask.objects.filter(pk=tried.pk).update(attempt=1)

        assert begin("call", retried=False) == []
        assert begin("call") == [tried.pk]

    def test_no_more_than_asked_for(self, waiting, begin):
        waiting("call", "a", "b", "c")

        assert [len(begin("call", 2)), len(begin("call", 2))] == [2, 1]
