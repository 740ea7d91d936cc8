"""The rate is changed, removed or renamed by a deploy while tasks wait; a thousand failed tasks are run again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Rate, Retry, Timeline, task
from timeline.clocks import story_time
from timeline.engine.groups import run
from timeline.models import RateKey, ScheduledTask
from timeline.shortcuts import redrive, schedule
from timeline.testing import StoryClock, only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
CALLS: list[int] = []
FAILS: list[bool] = []


def code(rate):
    """A version of the code."""

    class Deployed(Timeline):
        entity = "testapp.Order"

        @task(rate=rate, retry=Retry(max_attempts=1))
        def call(self, order):
            CALLS.append(order.pk)
            if FAILS:
                raise ValueError("no")

    return only_timelines(Deployed)


def fresh_again():
    CALLS.clear()
    FAILS.clear()


@pytest.fixture(autouse=True)
def fresh():
    fresh_again()


@pytest.fixture
def waiting(now):
    """Twelve tasks, of which the old code, with ten an hour, has run ten."""
    orders = Order.objects.bulk_create([Order() for _ in range(12)])
    with code("10/h"):
        tasks = [schedule("deployed.call", order, at=now - HOUR).task for order in orders]
        go(tasks, now)
    assert len(CALLS) == 10
    return tasks


def go(tasks, at):
    with story_time(lambda: at):
        run(task_ids=[task.pk for task in tasks], clock=lambda: at, using="default")


class TestDeploys:
    def test_a_lower_rate_counts_what_has_begun(self, waiting, now):
        with code("2/h"):
            go([schedule("deployed.call", Order.objects.create(), at=now).task], now + HOUR / 2)

        assert len(CALLS) == 10

    def test_a_higher_rate_holds_at_once(self, waiting, now):
        with code("12/h"), StoryClock(now + timedelta(minutes=1)) as clock:
            new = [schedule("deployed.call", Order.objects.create(), at=now).task for _ in range(3)]
            go(new, now + timedelta(minutes=1))
            begun = len(CALLS)
            clock.run_until(now + 3 * HOUR)

        assert begun in (11, 12)  # The last one may be kept for those that wait.
        assert len(CALLS) == 15

    def test_without_the_rate_what_waits_runs_when_its_moment_comes(self, waiting, now):
        with code(None), StoryClock(now) as clock:
            clock.run_until(now + 3 * HOUR)

        assert len(CALLS) == 12
        assert not ScheduledTask.objects.open().exists()

    def test_another_key_begins_anew(self, waiting, now):
        with code(Rate("10/h", key="other")), StoryClock(now) as clock:
            clock.run_until(now + 3 * HOUR)

        assert len(CALLS) == 12
        assert set(RateKey.objects.values_list("key", flat=True)) == {"deployed.call", "other"}


class TestRunAgain:
    def test_many_failed_tasks_keep_the_rate(self, now):
        orders = Order.objects.bulk_create([Order() for _ in range(300)])
        FAILS.append(True)
        with code(None):
            tasks = [schedule("deployed.call", order, at=now - HOUR).task for order in orders]
            go(tasks, now)
        fresh_again()
        with code("100/h"):
            again = redrive([task.pk for task in tasks], reason="again")
            go(again, now)
            first = len(CALLS)
            rows = ScheduledTask.objects.filter(state="retryable").order_by("scheduled_at")
            wait = [row.scheduled_at - now for row in rows]

        assert first == 100
        assert len(wait) == 200
        # The first hundred are told moments within the hour after the next, and no two the same.
        assert HOUR <= wait[0] < HOUR + timedelta(minutes=1)
        assert len(set(wait)) == 200
        assert wait[-1] <= 3 * HOUR
