"""Rescue: what a dead worker held is run again, and a lost message sent again."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from timeline import Timeline, after, task
from timeline.lifecycle import LEASED, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.rescuing import LONGEST_RESEND, rescue
from timeline.operations.running import run
from timeline.testing import only_timelines
from timeline.timing import EARLIEST


@pytest.fixture
def lost(make_task):
    """A row whose lease ran out."""
    return lambda state=State.ACTIVE, **columns: make_task(state=state, lease_expires_at=EARLIEST, **columns)


class TestRescue:
    @pytest.mark.parametrize("state", State)
    def test_leaves_what_nobody_gave_up(self, make_task, now, state):
        make_task(state=state)

        assert rescue(now=now, using="default") == ([], [], [])
        assert ScheduledTask.objects.get().seq == 0

    def test_takes_no_more_than_the_limit(self, lost, now):
        for _ in range(3):
            lost()

        assert len(rescue(limit=2, now=now, using="default").retried) == 2
        assert len(rescue(limit=2, now=now, using="default").retried) == 1


class TestRescueOfALostAttempt:
    def test_makes_the_task_due_again_at_once(self, lost, now, later):
        row = lost(attempt=1, failures=2, worker="host:1")

        rescued = rescue(now=later, using="default")

        row.refresh_from_db()
        assert rescued == ([row], [], [])
        assert (row.state, row.scheduled_at, row.lease_expires_at) == (State.RETRYABLE, later, None)
        assert (row.attempt, row.failures, row.reason_code) == (1, 2, "worker_lost")
        assert "host:1" in row.reason
        assert (row.log.get().from_state, row.log.get().to_state) == (State.ACTIVE, State.RETRYABLE)

    def test_does_not_count_the_first_attempt(self, lost, now):
        row = lost(attempt=1)

        rescue(now=now, using="default")

        row.refresh_from_db()
        assert row.lost == 0

    @pytest.mark.parametrize("attempt", [2, 7])
    def test_counts_the_others(self, lost, now, attempt):
        row = lost(attempt=attempt)

        rescue(now=now, using="default")

        row.refresh_from_db()
        assert (row.state, row.lost) == (State.RETRYABLE, 1)

    @pytest.mark.parametrize("most", [1, 3])
    def test_discards_a_task_that_lost_its_last(self, lost, now, settings, most):
        settings.TIMELINE = {"MAX_LOST": most}
        row = lost(attempt=most + 1, lost=most - 1)

        rescued = rescue(now=now, using="default")

        row.refresh_from_db()
        assert rescued == ([], [row], [])
        assert (row.state, row.lost, row.finished_at) == (State.DISCARDED, most, now)
        assert row.reason_code == "worker_lost"

    def test_takes_as_many_losses_as_the_settings_say_after_the_first(
        self, order, start_at, now, settings, let_lease_run_out
    ):
        """The whole way: each attempt's worker dies; the run is finished with the last of them."""
        settings.TIMELINE = {"MAX_LOST": 2}

        class Died(BaseException):
            pass

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                raise Died

        states = []
        with only_timelines(Job):
            start_at("job", order, now - timedelta(days=1))
            row = ScheduledTask.objects.get()
            while row.state != State.DISCARDED:
                self.die(row, now, Died)
                let_lease_run_out(row)
                rescue(now=now, using="default")
                row.refresh_from_db()
                states.append((row.state, row.attempt, row.lost))

        assert states == [(State.RETRYABLE, 1, 0), (State.RETRYABLE, 2, 1), (State.DISCARDED, 3, 2)]
        assert TimelineRun.objects.get().is_finished

    def die(self, row, now, died):
        with pytest.raises(died):
            run(task_ids=[row.pk], clock=lambda: now, using="default")


class TestRescueOfALostMessage:
    def test_has_it_sent_again_with_the_same_token(self, lost, now):
        token = uuid4()
        row = lost(State.PENDING, claim_token=token)

        rescued = rescue(now=now, using="default")

        assert rescued == ([], [], [row])
        row.refresh_from_db()
        assert (row.state, row.claim_token, row.attempt) == (State.PENDING, token, 0)
        entry = row.log.get()
        assert (entry.from_state, entry.to_state, entry.detail) == (State.PENDING, State.PENDING, {"resend": 1})

    def test_waits_twice_as_long_each_time_up_to_an_hour(self, lost, now, settings, let_lease_run_out):
        settings.TIMELINE = {"LEASE": timedelta(minutes=10)}
        row = lost(State.PENDING)
        waits = []

        for _ in range(4):
            rescue(now=now, using="default")
            row.refresh_from_db()
            waits.append(round((row.lease_expires_at - datetime.now(UTC)) / timedelta(minutes=1)))
            assert rescue(now=now, using="default").resend == []
            let_lease_run_out(row)

        assert waits == [20, 40, 60, 60]
        assert timedelta(hours=1) == LONGEST_RESEND

    @pytest.mark.parametrize("state", sorted(LEASED))
    def test_and_of_an_attempt_keep_to_their_own(self, lost, now, state):
        lost(state)

        rescued = rescue(now=now, using="default")

        assert bool(rescued.resend) == (state == State.PENDING)
        assert bool(rescued.retried) == (state == State.ACTIVE)


class TestStatements:
    def test_are_as_many_for_many_lost_messages_as_for_few(self, lost, now, statements_of):
        for _ in range(2):
            lost(state=State.PENDING)
        few = statements_of(lambda: rescue(now=now, using="default"))
        for _ in range(30):
            lost(state=State.PENDING)

        assert statements_of(lambda: rescue(now=now, using="default")) == few
