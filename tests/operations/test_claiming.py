"""Claim: take available tasks for the way through a broker."""

from datetime import UTC, datetime, timedelta

import pytest

from timeline import Timeline, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.operations.claiming import claim
from timeline.testing import only_timelines


class Job(Timeline):
    @task()
    def one(self):
        return None

    @task()
    def two(self):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Job):
        yield


@pytest.fixture
def ready(make_task):
    return lambda task_key="job.one", **columns: make_task(task_key=task_key, state=State.AVAILABLE, **columns)


class TestClaim:
    def test_takes_available_tasks_in_one_batch_for_each_key(self, ready, now):
        ones, two = [ready(), ready()], ready("job.two")

        batches = {batch.task_key: batch for batch in claim(now=now, using="default")}

        assert batches["job.one"].task_ids == [row.pk for row in ones]
        assert batches["job.two"].task_ids == [two.pk]
        assert batches["job.one"].token != batches["job.two"].token
        for row in (*ones, two):
            row.refresh_from_db()
            assert (row.state, row.claim_token) == (State.PENDING, batches[row.task_key].token)
            assert row.log.get().to_state == State.PENDING

    def test_holds_them_by_a_lease_of_real_time(self, ready, now, settings):
        settings.TIMELINE = {"LEASE": timedelta(seconds=90)}
        row = ready()

        claim(now=now, using="default")

        row.refresh_from_db()
        assert timedelta(seconds=80) < row.lease_expires_at - datetime.now(UTC) < timedelta(seconds=91)

    def test_takes_none_twice(self, ready, now):
        ready()

        assert len(claim(now=now, using="default")) == 1
        assert claim(now=now, using="default") == []

    def test_leaves_keys_that_this_process_does_not_know(self, ready, now):
        row = ready("gone.work")

        assert claim(now=now, using="default") == []
        row.refresh_from_db()
        assert row.state == State.AVAILABLE

    @pytest.mark.parametrize("state", sorted(set(State) - {State.AVAILABLE}))
    def test_leaves_what_is_not_available(self, make_task, now, state):
        make_task(state=state, task_key="job.one")

        assert claim(now=now, using="default") == []

    def test_takes_no_more_than_the_limit_in_the_order_they_should_run(self, ready, now):
        late, early, urgent = (
            ready(scheduled_at=now),
            ready(scheduled_at=now - timedelta(hours=1)),
            ready(scheduled_at=now, priority=-1),
        )

        [batch] = claim(limit=2, now=now, using="default")

        assert batch.task_ids == [urgent.pk, early.pk]
        assert ScheduledTask.objects.ready().get() == late
