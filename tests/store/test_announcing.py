"""Announcing: after the commit, what is due now or soon, and never in anybody's way."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from timeline import RetryAfter, Timeline, after, task
from timeline.clocks import story_now
from timeline.engine.groups import run
from timeline.models import ScheduledTask
from timeline.shortcuts import move, run_now, schedule, start
from timeline.signals import work_due, work_soon
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)


class Jobs(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def later(self, order) -> None: ...

    @task(after(later, days=0))
    def then(self, order) -> None: ...

    @task()
    def work(self, order) -> None: ...

    @task()
    def fails(self, order) -> None:
        raise RetryAfter(timedelta(**self.task.payload))


@pytest.fixture(autouse=True)
def _only_these():
    with only_timelines(Jobs):
        yield


@pytest.fixture
def hear():
    """Aliases for which a signal was sent, each with whether a transaction was open then."""
    heard = {}

    def listen(signal):
        calls = heard.setdefault(signal, [])

        def receive(using, **_extra):
            calls.append((using, connection.in_atomic_block))

        signal.connect(receive, weak=False)
        connected.append((signal, receive))
        return calls

    connected = []
    yield listen
    for signal, receive in connected:
        signal.disconnect(receive)


@pytest.fixture
def announced(hear):
    """Where it was announced that something is due."""
    return hear(work_due)


@pytest.fixture
def announced_soon(hear):
    """Where it was announced that something soon will be."""
    return hear(work_soon)


def ago(**span):
    return timezone.now() - timedelta(**span)


def run_it(row):
    run(task_ids=[row.pk], clock=lambda: story_now("default"), using="default")


class TestWorkDue:
    def test_is_announced_after_the_commit(self, announced, order):
        with transaction.atomic():
            schedule("jobs.work", order, at=ago(seconds=1))
            assert announced == []

        assert announced == [("default", False)]

    def test_is_not_announced_for_what_is_ahead(self, announced, order):
        schedule("jobs.work", order, at=ago(days=-1))
        start("jobs", order)

        assert announced == []

    def test_is_not_announced_when_the_transaction_fails(self, announced, order):
        with transaction.atomic():
            schedule("jobs.work", order, at=ago(seconds=1))
            transaction.set_rollback(True)

        assert announced == []

    @pytest.mark.parametrize(
        "hasten",
        [lambda row: run_now(row, reason="asked for"), lambda row: move(row, at=ago(hours=1), reason="asked for")],
    )
    def test_is_announced_when_somebody_makes_a_task_due(self, announced, order, hasten):
        row = schedule("jobs.work", order, at=ago(days=-1)).task

        hasten(row)

        assert announced == [("default", False)]

    def test_harms_nobody_when_a_listener_fails(self, order):
        def fail(**_extra):
            raise RuntimeError("a listener's own trouble")

        work_due.connect(fail)
        try:
            row = schedule("jobs.work", order, at=ago(seconds=1)).task
        finally:
            work_due.disconnect(fail)

        row.refresh_from_db()
        assert row.state == "available"

    def test_is_announced_when_a_follow_up_is_due_at_once(self, announced, order):
        start("jobs", order, started_at=ago(days=2))
        row = ScheduledTask.objects.get()
        announced.clear()

        run_it(row)

        assert announced == [("default", False)]

    def test_is_announced_when_a_retry_is_due_at_once(self, announced, order):
        row = schedule("jobs.fails", order, at=ago(seconds=1), payload={"seconds": 0}).task
        announced.clear()

        run_it(row)

        assert announced == [("default", False)]


class TestWorkSoon:
    """A poll that sleeps until its next row must hear of one that comes before."""

    @pytest.fixture(autouse=True)
    def _interval(self, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(minutes=10)}

    def test_is_announced_for_what_is_due_before_the_next_poll(self, announced, announced_soon, order):
        schedule("jobs.work", order, at=ago(minutes=-9))

        assert (announced, announced_soon) == ([], [("default", False)])

    def test_is_not_announced_for_what_is_due_later(self, announced, announced_soon, order):
        schedule("jobs.work", order, at=ago(minutes=-11))

        assert (announced, announced_soon) == ([], [])

    def test_is_announced_for_what_is_moved_there(self, announced, announced_soon, order):
        row = schedule("jobs.work", order, at=ago(days=-1)).task

        move(row, at=ago(minutes=-5), reason="asked for")

        assert (announced, announced_soon) == ([], [("default", False)])

    @pytest.mark.parametrize(("minutes", "times"), [(5, 1), (20, 0)])
    def test_is_announced_for_a_retry_before_the_next_poll(self, announced_soon, order, minutes, times):
        row = schedule("jobs.fails", order, at=ago(seconds=1), payload={"minutes": minutes}).task

        run_it(row)

        assert announced_soon == times * [("default", False)]
