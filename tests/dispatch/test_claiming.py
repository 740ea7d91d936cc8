"""Claim: take available tasks for the way through a broker."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from timeline import Timeline, task
from timeline.clocks import MachineTime
from timeline.dispatch.claim import ClaimedBatch, claim, find_delayed, hand_back
from timeline.dispatch.rescue import rescue
from timeline.dispatch.worker_signs import keep_paces
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.testing import only_timelines


class Job(Timeline):
    @task()
    def one(self):
        return None

    @task()
    def two(self):
        return None

    @task(queue="mail")
    def mail(self):
        return None


class Gather(Timeline):
    entity = "testapp.Order"

    @task(bulk=2)
    def many(self, orders):
        return None

    @task(atomic=False)
    async def side_by_side(self, order):
        return None


ENDED = {"finished_at": datetime(2026, 3, 1, tzinfo=UTC), "reason_code": "operator", "lease_expires_at": None}


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Job):
        yield


@pytest.fixture
def ready(make_task):
    return lambda task_key="job.one", **columns: make_task(task_key=task_key, state=State.AVAILABLE, **columns)


@pytest.fixture
def fast(db):
    """Let workers have seen that these kinds take no time: many go into one message."""
    keep_paces({"job.one": 0.001, "job.two": 0.001}, using="default")


class TestClaim:
    def test_takes_available_tasks_in_one_batch_for_each_key(self, ready, now, fast):
        ones, two = [ready(), ready()], ready("job.two")

        batches = {batch.task_key: batch for batch in claim(now=now, using="default")}

        assert batches["job.one"].task_ids == [row.pk for row in ones]
        assert batches["job.two"].task_ids == [two.pk]
        for row in (*ones, two):
            row.refresh_from_db()
            assert (row.state, row.claim_token) == (State.PENDING, batches[row.task_key].token)
            assert row.log.get().to_state == State.PENDING

    @pytest.mark.parametrize(("lease", "held"), [(90, 15), (7, 7)])
    def test_holds_them_by_a_lease_of_real_time(self, ready, now, settings, lease, held):
        """Shorter than a worker's: what is on its way is not kept up by anybody."""
        settings.TIMELINE = {"LEASE": timedelta(seconds=lease)}
        row = ready()

        claim(now=now, using="default")

        row.refresh_from_db()
        assert timedelta(0) < row.lease_expires_at - datetime.now(UTC) < timedelta(seconds=held + 1)
        assert abs(row.sent_at - datetime.now(UTC)) < timedelta(minutes=1)

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

    def test_takes_no_more_than_the_limit_in_the_order_they_should_run(self, ready, now, fast):
        late, later, early = (ready(scheduled_at=now - timedelta(hours=hours)) for hours in (1, 0, 2))

        [batch] = claim(limit=2, now=now, using="default")

        assert batch.task_ids == [early.pk, late.pk]
        assert ScheduledTask.objects.ready().get() == later

    def test_takes_what_is_most_urgent_before_anything_else(self, ready, now):
        """Strictly: what is less urgent waits until nothing more urgent is available in its queue."""
        early, urgent = ready(scheduled_at=now - timedelta(hours=1)), ready("job.two", priority=-1)

        first, second = (claim(limit=2, now=now, using="default") for _ in range(2))

        assert [batch.task_ids for batch in first] == [[urgent.pk]]
        assert [batch.task_ids for batch in second] == [[early.pk]]

    def test_takes_what_is_most_urgent_of_one_kind_first(self, ready, now):
        early, urgent = ready(scheduled_at=now - timedelta(hours=1)), ready(priority=-1)

        first, second = (claim(limit=2, now=now, using="default") for _ in range(2))

        assert [batch.task_ids for batch in first + second] == [[urgent.pk], [early.pk]]


class TestShares:
    """Who is taken, where there is more than may be on its way."""

    def taken(self, **given):
        claimed = claim(**given, using="default")
        return Counter(batch.task_key for batch in claimed for _task_id in batch.task_ids)

    def test_of_kinds_are_equal_whatever_was_due_first(self, ready, now):
        """A flood of one kind, all of it due longer, does not starve another."""
        for _ in range(30):
            ready(scheduled_at=now - timedelta(hours=1))
        for _ in range(5):
            ready("job.two")

        assert self.taken(limit=10, now=now) == {"job.one": 5, "job.two": 5}

    def test_are_taken_in_turns_where_there_is_room_for_one(self, ready, now, settings):
        """With slow handlers there is room for one at a time; which kind has it is left to chance, not to its name."""
        settings.TIMELINE = {"MAX_PENDING": 1}
        for _ in range(40):
            ready()
            ready("job.two")
        seen = set()

        for _ in range(40):
            seen |= set(self.taken(now=now))
            ScheduledTask.objects.filter(state=State.PENDING).update(state=State.CANCELLED, **ENDED)

        assert seen == {"job.one", "job.two"}

    def test_of_a_queue_are_not_taken_by_a_full_one(self, ready, now, settings):
        settings.TIMELINE = {"MAX_PENDING": 3}
        for _ in range(5):
            ready()
            ready("job.mail", queue="mail")

        assert self.taken(now=now) == {"job.one": 3, "job.mail": 3}
        assert self.taken(now=now) == {}
        ScheduledTask.objects.filter(state=State.PENDING, queue="mail").update(state=State.CANCELLED, **ENDED)
        assert self.taken(now=now) == {"job.mail": 2}

    def test_of_a_queue_are_not_held_up_by_what_is_more_urgent_in_another(self, ready, now):
        ready(priority=-1)
        ready("job.mail", queue="mail", priority=7)

        assert self.taken(now=now) == {"job.one": 1, "job.mail": 1}


class TestSizesOfMessages:
    def sizes(self, now, **given):
        return sorted(len(batch.task_ids) for batch in claim(now=now, using="default", **given))

    def test_are_one_for_a_kind_that_nobody_knows_yet(self, ready, now):
        for _ in range(3):
            ready()

        assert self.sizes(now) == [1, 1, 1]

    def test_are_what_takes_a_fifth_of_a_second(self, ready, now):
        keep_paces({"job.one": 0.05}, using="default")
        for _ in range(10):
            ready()

        assert self.sizes(now) == [2, 4, 4]

    def test_are_one_for_a_slow_kind(self, ready, now):
        keep_paces({"job.one": 30}, using="default")
        for _ in range(2):
            ready()

        assert self.sizes(now) == [1, 1]

    def test_are_what_a_handler_of_many_takes_whatever_its_pace(self, ready, now, order):
        keep_paces({"gather.many": 30}, using="default")
        with only_timelines(Gather):
            for _ in range(5):
                ready("gather.many", entity_label="testapp.order", entity_id=str(order.pk))

            assert self.sizes(now) == [1, 2, 2]

    def test_are_what_runs_side_by_side_for_an_async_handler(self, ready, now, order):
        with only_timelines(Gather):
            for _ in range(130):
                ready("gather.side_by_side", entity_label="testapp.order", entity_id=str(order.pk))

            assert self.sizes(now, limit=500) == [30, 100]


class TestHandBack:
    def test_lets_the_next_poll_send_them_at_once_without_a_move(self, ready, now):
        row = ready()
        batches = claim(now=now, using="default")

        assert hand_back(batches, using="default") == 1

        assert rescue(now=now, using="default").resend == [row]
        row.refresh_from_db()
        assert (row.state, row.claim_token) == (State.PENDING, batches[0].token)

    def test_leaves_what_was_claimed_with_another_token(self, ready, now):
        ready()
        [batch] = claim(now=now, using="default")

        assert hand_back([batch._replace(token=uuid4())], using="default") == 0
        assert not ScheduledTask.objects.given_up().exists()


class TestOverlooked:
    """Claimed tasks whose message has waited for a worker for long."""

    @pytest.fixture
    def waiting(self, make_task):
        """Have a task on its way whose message was sent so many seconds ago."""

        def make(seconds, task_key="job.one", token=None, *, lease=15):
            row = make_task(task_key=task_key, state=State.PENDING, claim_token=token or uuid4())
            sent, ends = (MachineTime(timedelta(seconds=left)) for left in (-seconds, lease - seconds))
            ScheduledTask.objects.filter(pk=row.pk).update(lease_expires_at=ends, sent_at=sent)
            return row

        return make

    @pytest.mark.parametrize(
        ("ago", "lease", "found"),
        [(0.5, 15, False), (2.5, 15, True), (14, 15, True), (16, 15, False), (600, 960, True)],
    )
    def test_are_those_of_two_polls_ago(self, waiting, ago, lease, found):
        """What was sent just now will be started, what was handed back is sent again by the next poll; however often it was."""
        row = waiting(ago, lease=lease)

        batch = find_delayed(["job.one"], using="default")

        assert batch == (ClaimedBatch("job.one", row.queue, row.claim_token, [row.pk]) if found else None)

    def test_are_of_kinds_that_are_asked_for(self, waiting):
        waiting(10)

        assert find_delayed(["job.two"], using="default") is None

    def test_are_of_one_message(self, waiting):
        """So that they can be started with its token."""
        token = uuid4()
        several = {waiting(10, token=token).pk for _ in range(3)}
        alone = {waiting(5).pk}

        found = [set(find_delayed(["job.one"], using="default").task_ids) for _ in range(20)]

        assert all(task_ids in (several, alone) for task_ids in found)
        assert len({frozenset(task_ids) for task_ids in found}) == 2  # But for once in half a million times.

    def test_were_not_started_meanwhile(self, waiting):
        row = waiting(10)
        ScheduledTask.objects.filter(pk=row.pk).update(state=State.ACTIVE, attempt=1)

        assert find_delayed(["job.one"], using="default") is None
