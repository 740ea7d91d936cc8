"""Kinds that name the same key: who has waited longest is next, whichever kind it is of, and a flood of one starves none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.features.limits.limited import finish
from tests.testapp.models import Order
from timeline import Limit, Timeline, task
from timeline.dispatch.poll import dispatch
from timeline.engine.groups import run
from timeline.features.limits.claims import begin_limited, claim_limited
from timeline.features.limits.places import limited_kinds
from timeline.models import ScheduledTask
from timeline.shortcuts import hold, schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)


class Bank(Timeline):
    """One call at a time, of whichever kind; ``advice`` comes before ``refund`` by its name."""

    entity = "testapp.Order"

    @task(limit=Limit(1, "bank"), atomic=False)
    def advice(self, order): ...

    @task(limit=Limit(1, "bank"), atomic=False)
    def refund(self, order): ...

    @task(limit=Limit(1, "bank"), atomic=False, priority=-5)
    def urgent(self, order): ...


class Others(Timeline):
    """Share nothing with those above."""

    entity = "testapp.Order"

    @task(limit=Limit(1, "bank", by="note"), atomic=False)
    def by_note(self, order): ...

    @task(limit=Limit(1, "bank", by="note"), atomic=False)
    def by_note_too(self, order): ...

    @task(limit=3)
    def alone(self, order): ...


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Bank, Others):
        yield


@pytest.fixture
def due(now):
    """Schedule a kind, due so many seconds ago, of an order of its own or this one."""

    def made(name, *seconds, order=None):
        return [
            schedule(f"bank.{name}", order or Order.objects.create(), at=now - number * SECOND).task
            for number in seconds
        ]

    return made


class Posts:
    """A broker whose messages are worked off at once."""

    def __init__(self, now):
        self.now, self.ran = now, []

    def connect(self): ...

    def send(self, batch, *, using):
        ran = run(task_ids=batch.task_ids, clock=lambda: self.now, using=using, token=batch.token)
        self.ran += [task.pk for task in ran]


def rows_of(*groups):
    return [row.pk for group in groups for row in group]


class TestOverABroker:
    def test_who_has_waited_longest_is_next(self, due, now):
        flood = due("advice", *range(20, 10, -1))
        [between] = due("refund", 15.5)
        posts = Posts(now)

        dispatch(sender=posts, now=now, using="default")

        assert posts.ran == rows_of(flood[:5], [between], flood[5:])

    def test_who_is_more_urgent_is_next(self, due, now):
        flood = due("advice", *range(20, 10, -1))
        [urgent] = due("urgent", 1)
        posts = Posts(now)

        dispatch(sender=posts, now=now, using="default")

        assert posts.ran == rows_of([urgent], flood)

    def test_who_is_on_hold_is_waited_for_by_nobody(self, due, now):
        first = Order.objects.create()
        due("refund", 90, order=first)
        [advice] = due("advice", 10)
        hold(first, reason="asked to wait")
        posts = Posts(now)

        dispatch(sender=posts, now=now, using="default")

        assert posts.ran == [advice.pk]

    def test_a_kind_that_is_on_hold_is_waited_for_by_nobody(self, due, now):
        due("refund", 90)
        [advice] = due("advice", 10)
        hold(task="bank.refund", reason="asked to wait")
        posts = Posts(now)

        dispatch(sender=posts, now=now, using="default")

        assert posts.ran == [advice.pk]

    def test_a_kind_of_which_enough_is_on_its_way_is_waited_for_by_nobody(self, due, now, settings):
        settings.TIMELINE = {**settings.TIMELINE, "MAX_PENDING": 1}
        first, second = Order.objects.create(note="a"), Order.objects.create(note="b")
        schedule("others.by_note", first, at=now - 9 * SECOND)
        claim_limited(now=now, using="default")
        schedule("others.by_note", second, at=now - 5 * SECOND)
        task = schedule("others.by_note_too", second, at=now - SECOND).task

        [batch] = claim_limited(now=now, using="default")

        assert batch.task_ids == [task.pk]

    def test_a_kind_that_is_not_known_here_is_waited_for_by_nobody(self, due, now):
        [refund] = due("refund", 90)
        [advice] = due("advice", 10)
        ScheduledTask.objects.filter(pk=refund.pk).update(task_key="gone.refund")
        posts = Posts(now)

        dispatch(sender=posts, now=now, using="default")

        assert posts.ran == [advice.pk]


class TestInAWorker:
    def test_who_has_waited_longest_is_next_however_often_the_others_are_asked_first(self, due, now):
        flood = due("advice", *range(20, 10, -1))
        [between] = due("refund", 15.5)
        ran = []

        for _turn in range(30):
            for kind in limited_kinds(["bank.advice", "bank.refund"], using="default"):
                attempts = begin_limited(kind, most=9, worker="w", now=now, using="default")
                ran += [task.pk for task in finish(attempts, now)] if attempts else []

        assert ran == rows_of(flood[:5], [between], flood[5:])
