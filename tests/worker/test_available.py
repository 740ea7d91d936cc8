"""Begin what is available: the most urgent kinds first, in equal parts."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.databases import VENDOR
from timeline import Timeline, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.testing import only_timelines
from timeline.worker.batch import Available
from timeline.worker.group_runner import Busy
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.process import PaceOfKinds


class Jobs(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    def one(self, order): ...

    @task(atomic=False)
    def two(self, order): ...

    @task(queue="mail", bulk=10)
    def mail(self, orders): ...


class Quick(PaceOfKinds):
    """Of a process that has run many."""

    def most(self, task_key, budget=None):
        return 100


@pytest.fixture(autouse=True)
def _jobs(db):
    with only_timelines(Jobs):
        yield


@pytest.fixture
def have(make_task, order):
    """Have so many of a kind ready, each about an order."""

    def made(name, count, **columns):
        about = {"entity_label": "testapp.order", "entity_id": str(order.pk)}
        return [
            make_task(task_key=f"jobs.{name}", state=State.AVAILABLE, occurrence=f"{name} {number}", **about, **columns)
            for number in range(count)
        ]

    return made


@pytest.fixture
def available(now):
    """Begins what is available: ``available(others_run=True)``."""

    def made(*, stopping=bool, others_run=False):
        return Available(
            busy=Busy(others_run),
            clock=lambda: now,
            using="default",
            watch=Heartbeat("default", stopping, Quick()),
            worker="w",
            records_late=False,
        )

    return made


def kinds(groups):
    return [Counter(attempt.task.task_key for attempt in group) for group in groups]


class TestGroups:
    def test_are_one_of_each_of_the_most_urgent_kinds(self, available, have):
        have("one", 3, priority=-1)
        have("two", 2, priority=-1)
        have("mail", 5)

        found = kinds(available().groups())

        alone = VENDOR == "sqlite"  # There each is begun by itself.
        assert found == [{"jobs.one": 1 if alone else 3}, {"jobs.two": 1 if alone else 2}]
        assert set(ScheduledTask.objects.filter(state=State.ACTIVE).values_list("worker", flat=True)) == {"w"}

    def test_are_of_the_queue_asked_for(self, available, have):
        have("one", 1, priority=-1)
        have("mail", 1)

        assert kinds(available().groups("mail")) == [{"jobs.mail": 1}]

    def test_end_where_the_worker_stops(self, available, have):
        have("one", 1)

        assert list(available(stopping=lambda: True).groups()) == []
        assert ScheduledTask.objects.get().state == State.AVAILABLE

    def test_wait_with_what_was_tried_before_until_nothing_else_runs(self, available, have):
        [row] = have("one", 1, attempt=1)
        begun = available(others_run=True).groups()

        assert next(begun) == []
        row.refresh_from_db()
        assert row.state == State.AVAILABLE
        assert [attempt.task for attempt in next(begun)] == [row]


class TestMore:
    def test_begins_no_more_than_asked_for(self, available, have):
        have("mail", 5)

        assert len(available().more("jobs.mail", 3)) == (3 if VENDOR == "postgresql" else 1)

    def test_begins_none_while_another_kind_of_its_queue_is_ready(self, available, have):
        have("one", 2)
        have("two", 1)
        have("mail", 1)

        assert available().more("jobs.one", 2) == []
        assert len(available().more("jobs.mail", 2)) == 1

    def test_begins_none_that_was_tried_before(self, available, have):
        have("mail", 1, attempt=1)

        assert available().more("jobs.mail", 2) == []
