"""A batch: worked off in groups that grow while handlers prove fast."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.testapp.models import Effect, Order
from timeline import Timeline, task
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.dispatch.worker_signs import keep_paces
from timeline.engine.groups import BUDGET
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.worker.batch import run_batch
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.process import PaceOfKinds, group_size

pytestmark = pytest.mark.django_db(transaction=True)


class Jobs(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    def plain(self, order) -> int:
        active = ScheduledTask.objects.filter(state="active").count()
        Effect.objects.create(name=str(active))
        return active

    @task(bulk=4)
    def many(self, orders) -> None:
        Effect.objects.create(name=str(len(orders)))

    @task(atomic=False)
    async def side(self, order) -> None: ...

    @task(atomic=False, queue="mail")
    def post(self, order) -> None: ...


class OneMore(PaceOfKinds):
    """Lets each group be one larger than the one before."""

    groups = 0

    def most(self, task_key: str, budget: timedelta = BUDGET) -> int:
        self.groups += 1
        return self.groups


@pytest.fixture(autouse=True)
def _jobs(monkeypatch):
    monkeypatch.setattr("timeline.engine.execute.BUDGET", timedelta(hours=1))
    with only_timelines(Jobs):
        yield


@pytest.fixture
def claimed(db):
    """Claim so many tasks of a kind in one message, each of an order of its own, or of the one given."""

    def claim_them(task_key, count, order=None):
        keep_paces({task_key: 0}, using="default")
        now = timezone.now()
        for number in range(count):
            schedule(task_key, order or Order.objects.create(), at=now - timedelta(seconds=60 - number))
        stage(now=now, using="default")
        return claim(now=now, using="default")

    return claim_them


def effects():
    return [int(name) for name in Effect.objects.order_by("pk").values_list("name", flat=True)]


class TestRunBatch:
    def test_starts_groups_of_what_the_pace_allows(self, claimed):
        [batch] = claimed("jobs.plain", 7)

        with Heartbeat("default", bool, OneMore()) as watch:
            ran = run_batch(batch, watch=watch, using="default", worker="w")

        assert ran == 7
        assert effects() == [1, 2, 2, 3, 3, 3, 1]
        assert set(ScheduledTask.objects.values_list("state", "worker")) == {("completed", "w")}

    def test_learns_the_pace(self, claimed):
        [batch], pace = claimed("jobs.plain", 3), PaceOfKinds()

        with Heartbeat("default", bool, pace) as watch:
            run_batch(batch, watch=watch, using="default", worker="w")
        pace.keep(using="default")

        assert pace.most("jobs.plain") <= 3

    def test_leaves_what_is_claimed_with_another_token(self, claimed):
        [batch] = claimed("jobs.plain", 2)

        with Heartbeat("default", bool) as watch:
            ran = run_batch(batch._replace(token=uuid4()), watch=watch, using="default", worker="w")

        assert (ran, effects()) == (0, [])

    def test_asks_once_what_of_it_others_have_left(self, claimed):
        """However many groups it would be."""

        def statements(count):
            [batch] = claimed("jobs.plain", count)
            with CaptureQueriesContext(connection) as asked, Heartbeat("default", bool) as watch:
                assert run_batch(batch._replace(token=uuid4()), watch=watch, using="default", worker="w") == 0
            return len([query for query in asked if "scheduledtask" in query["sql"]])

        assert statements(3) == statements(30)

    def test_runs_what_others_have_left_of_it(self, claimed):
        [batch] = claimed("jobs.plain", 6)
        ScheduledTask.objects.filter(pk__in=[batch.task_ids[place] for place in (0, 1, 3)]).update(claim_token=uuid4())

        with Heartbeat("default", bool) as watch:
            ran = run_batch(batch, watch=watch, using="default", worker="w")

        completed = ScheduledTask.objects.filter(state="completed").values_list("pk", flat=True)
        assert (ran, set(completed)) == (3, {batch.task_ids[place] for place in (2, 4, 5)})

    def test_stops_between_groups(self, claimed):
        [batch] = claimed("jobs.plain", 5)

        with Heartbeat("default", lambda: Effect.objects.count() >= 1) as watch:
            ran = run_batch(batch, watch=watch, using="default", worker="w")

        assert ran == 1
        assert ScheduledTask.objects.filter(state="pending", attempt=0).count() == 4


class TestWhatElseIsReady:
    """A worker that has ended its batch goes on by itself."""

    @pytest.fixture
    def ready(self, db):
        """Have a task available that no poll has claimed."""

        def make(task_key):
            now = timezone.now()
            row = schedule(task_key, Order.objects.create(), at=now - timedelta(seconds=1))
            stage(now=now, using="default")
            return row

        return make

    @pytest.fixture
    def work(self):
        def work_off(batch, stopping=bool):
            with Heartbeat("default", stopping) as watch:
                return run_batch(batch, watch=watch, using="default", worker="w")

        return work_off

    def states(self):
        rows = ScheduledTask.objects.order_by("task_key").values_list("task_key", "state")
        return [(task_key.removeprefix("jobs."), state) for task_key, state in rows]

    def test_is_run_too_if_it_is_of_the_same_queue(self, claimed, ready, work):
        [batch] = claimed("jobs.plain", 1)
        ready("jobs.side")
        ready("jobs.post")

        assert work(batch) == 2

        assert self.states() == [("plain", "completed"), ("post", "available"), ("side", "completed")]
        assert not LogEntry.objects.filter(task__task_key="jobs.side", to_state="pending").exists()

    def test_is_left_by_who_could_start_nothing(self, claimed, ready, work):
        """A second copy of a message does nothing at all."""
        [batch] = claimed("jobs.plain", 1)
        ready("jobs.side")

        assert work(batch._replace(token=uuid4())) == 0

        assert self.states() == [("plain", "pending"), ("side", "available")]

    def test_is_left_by_who_is_told_to_stop(self, claimed, ready, work):
        [batch] = claimed("jobs.plain", 1)
        ready("jobs.side")

        assert work(batch, stopping=Effect.objects.exists) == 1

        assert self.states() == [("plain", "completed"), ("side", "available")]

    def test_is_left_when_other_messages_should_have_their_turn(self, claimed, ready, work, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(microseconds=1)}
        [batch] = claimed("jobs.plain", 1)
        ready("jobs.side")

        assert work(batch) == 1

        assert self.states() == [("plain", "completed"), ("side", "available")]

    def test_goes_on_until_nothing_is_left(self, claimed, ready, work):
        """What becomes available meanwhile is found, one group after the other."""
        [batch] = claimed("jobs.plain", 1)
        for _ in range(9):
            ready("jobs.plain")

        assert work(batch) == 10

    def test_begins_with_what_has_waited_for_a_worker_for_long(self, claimed, ready, work):
        """Its message may be with a worker that is busy for hours. When it comes, it does nothing."""
        [stuck] = claimed("jobs.plain", 2)
        ScheduledTask.objects.on_their_way().update(sent_at=timezone.now() - timedelta(seconds=5))
        [batch] = claimed("jobs.plain", 1)

        assert work(batch) == 3

        assert set(ScheduledTask.objects.values_list("state", "attempt")) == {("completed", 1)}
        assert work(stuck) == 0

    def test_are_not_those_whose_message_was_sent_just_now(self, claimed, work):
        claimed("jobs.plain", 2)
        [batch] = claimed("jobs.plain", 1)

        assert work(batch) == 1


class TestGroupSize:
    @pytest.mark.parametrize(
        ("task_key", "size"), [("jobs.many", 4), ("jobs.side", 100), ("jobs.plain", 1), ("gone.work", 1)]
    )
    def test_is_what_is_declared_or_the_pace_allows(self, task_key, size):
        assert group_size(task_key, PaceOfKinds()) == size

    @pytest.mark.parametrize(
        ("task_key", "seconds", "size"),
        [("jobs.plain", 0.002, 18), ("jobs.plain", 0.0001, 500), ("jobs.many", 0.002, 4), ("jobs.side", 0.002, 100)],
    )
    def test_leaves_time_for_outcomes_that_are_recorded_aside(self, task_key, seconds, size):
        """Of handlers that take long enough for anything to be done meanwhile."""
        pace = PaceOfKinds()
        pace.took(task_key, 1000, 1000 * seconds)

        assert group_size(task_key, pace, records_late=True) == size
