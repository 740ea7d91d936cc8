"""Dispatch: what a poll does, and what it leaves when the broker takes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from timeline import Timeline, after, hourly, task
from timeline.clocks import MachineTime
from timeline.dispatch.claim import FEW, ClaimedBatch
from timeline.dispatch.poll import AT_FIRST, LEAST, Dispatched, dispatch
from timeline.dispatch.worker_signs import keep_paces
from timeline.exceptions import BrokerUnavailable
from timeline.lifecycle import State
from timeline.models import Hold, Identity, LogEntry, ScheduledTask
from timeline.testing import only_timelines


class Job(Timeline):
    @task()
    def one(self):
        return None

    @task(queue="mail")
    def two(self):
        return None


MOMENT = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Post:
    """A broker in this process: keeps the messages, or takes none of them, or no more than some."""

    def __init__(self):
        self.open = True
        self.room = 1_000_000
        self.sent = []
        self.in_transaction = False

    def connect(self):
        if not self.open:
            raise BrokerUnavailable(ConnectionRefusedError())

    def send(self, batch, *, using):
        self.connect()
        if len(self.sent) >= self.room:
            raise BrokerUnavailable(ConnectionResetError())
        self.in_transaction |= connection.in_atomic_block
        self.sent.append((batch, using))

    @property
    def task_ids(self):
        return [task_id for batch, _using in self.sent for task_id in batch.task_ids]


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Job):
        yield


@pytest.fixture
def post():
    return Post()


@pytest.fixture
def due(make_task):
    return lambda task_key="job.one", **columns: make_task(task_key=task_key, **columns)


def states():
    return sorted(ScheduledTask.objects.values_list("state", flat=True))


def run_out():
    """Let all leases run out."""
    ScheduledTask.objects.exclude(lease_expires_at=None).update(lease_expires_at=MachineTime(timedelta(seconds=-1)))


def let_pass(seconds):
    """Let so many seconds pass for what is on its way."""
    ago = timedelta(seconds=seconds)
    ScheduledTask.objects.exclude(lease_expires_at=None).update(
        lease_expires_at=F("lease_expires_at") - ago, sent_at=F("sent_at") - ago
    )


class TestDispatch:
    def test_stages_claims_and_sends_what_is_due(self, post, due, now):
        rows = [due(), due("job.two", queue="mail")]

        done = dispatch(sender=post, now=now, using="default")

        assert (done.staged, done.sent, done.resent, done.rescued) == (2, 2, 0, 0)
        assert states() == ["pending", "pending"]
        assert {batch.queue: batch.task_ids for batch, _using in post.sent} == {
            "default": [rows[0].pk],
            "mail": [rows[1].pk],
        }
        assert {using for _batch, using in post.sent} == {"default"}

    def test_leaves_what_is_ahead(self, post, due, now):
        due(scheduled_at=now + timedelta(seconds=1))

        done = dispatch(sender=post, now=now, using="default")

        assert (done, post.sent) == (Dispatched(), [])

    def test_puts_few_tasks_in_a_message_and_goes_on_until_all_are_sent(self, post, due, now):
        keep_paces({"job.one": 0.02}, using="default")
        rows = {due().pk for _ in range(35)}

        done = dispatch(sender=post, limit=20, now=now, using="default")

        assert done.sent == 35
        assert [len(batch.task_ids) for batch, _using in post.sent] == [10, 10, 10, 5]
        assert len({batch.token for batch, _using in post.sent}) == 2  # One a claim.
        assert set(post.task_ids) == rows

    def test_claims_as_many_at_a_time_as_take_little_time(self, post, due, now, monkeypatch):
        """Others wait for the rows that a claim locks, and for the processor."""
        clock, asked = [0.0], []
        claims = iter([(100, 1 / 32), (64, 1 / 8), (25, 1 / 256), (128, 1 / 1024), (0, 0.0)])

        def claim(*, limit, **_given):
            asked.append(limit)
            count, seconds = next(claims)
            clock[0] += seconds
            return [ClaimedBatch("job.one", "default", uuid4(), [uuid4()] * count)] if count else []

        monkeypatch.setattr("timeline.dispatch.poll.monotonic", lambda: clock[0])
        monkeypatch.setattr("timeline.dispatch.poll.claim", claim)
        due()

        dispatch(sender=post, limit=500, now=now, using="default")

        assert asked == [AT_FIRST, 64, LEAST, 128, 500]

    def test_leaves_the_rest_available_when_enough_is_on_its_way(self, post, due, now, settings):
        settings.TIMELINE = {"MAX_PENDING": 5}
        keep_paces({"job.one": 0.02}, using="default")
        for _ in range(8):
            due()

        first = dispatch(sender=post, limit=3, now=now, using="default")
        second = dispatch(sender=post, now=now, using="default")

        assert (first.sent, second.sent) == (5, 0)
        assert states() == ["available"] * 3 + ["pending"] * 5

    @pytest.mark.django_db(transaction=True)
    def test_holds_no_transaction_while_it_sends(self, post, due, now):
        due()

        dispatch(sender=post, now=now, using="default")

        assert (len(post.sent), post.in_transaction) == (1, False)


class TestBetweenTwoPolls:
    def test_sends_what_is_new(self, post, due, now):
        row = due()

        done = dispatch(sender=post, whole=False, now=now, using="default")

        assert (done.sent, post.task_ids) == (1, [row.pk])

    def test_leaves_what_got_lost_to_the_next_poll(self, post, due, now):
        due()
        dispatch(sender=post, now=now, using="default")
        run_out()

        done = dispatch(sender=post, whole=False, now=now, using="default")

        assert (done.resent, len(post.sent)) == (0, 1)
        assert dispatch(sender=post, now=now, using="default").resent == 1

    def test_leaves_no_sign_of_a_poller(self, post, now):
        Identity.objects.update(polled_at=None)

        dispatch(sender=post, whole=False, now=now, using="default")

        assert Identity.objects.get().polled_at is None


class TestLostMessages:
    def test_are_sent_again_with_the_same_token(self, post, due, now):
        keep_paces({"job.one": 0.02}, using="default")
        rows = [due(), due()]
        dispatch(sender=post, now=now, using="default")
        run_out()

        done = dispatch(sender=post, now=now, using="default")

        (first, _), (second, _) = post.sent
        assert (done.sent, done.resent) == (0, 2)
        assert (second.token, second.queue, set(second.task_ids)) == (
            first.token,
            first.queue,
            {row.pk for row in rows},
        )

    def test_are_not_sent_again_while_their_lease_lasts(self, post, due, now):
        due()
        dispatch(sender=post, now=now, using="default")

        done = dispatch(sender=post, now=now, using="default")

        assert (done.resent, len(post.sent)) == (0, 1)

    def test_that_were_sent_again_do_not_keep_new_ones_back(self, post, due, now):
        """A message that was lost twice is waited for longer and longer; whoever is idle meanwhile is woken for others."""
        for _ in range(FEW):
            due()
        dispatch(sender=post, now=now, using="default")
        for _ in range(2):
            run_out()
            dispatch(sender=post, now=now, using="default")
        new = due()

        at_once = dispatch(sender=post, now=now, using="default")
        let_pass(5)
        later = dispatch(sender=post, now=now, using="default")

        assert (at_once.sent, later.sent) == (0, 1)
        assert post.task_ids[-1] == new.pk

    def test_are_sent_again_a_quarter_of_a_minute_later(self, post, due, now):
        """And then after twice that time, and so on: a queue that is just slow is not flooded with copies."""
        due()
        dispatch(sender=post, now=now, using="default")
        resent = []

        for seconds in (14, 2, 28, 4, 50, 12):
            let_pass(seconds)
            resent.append(dispatch(sender=post, now=now, using="default").resent)

        assert resent == [0, 1, 0, 1, 0, 1]


class TestBrokerThatIsDown:
    def test_has_nothing_claimed_for_it(self, post, due, now):
        due()
        post.open = False

        with pytest.raises(BrokerUnavailable, match="ConnectionRefusedError"):
            dispatch(sender=post, now=now, using="default")

        assert states() == ["scheduled"]
        assert not LogEntry.objects.exists()

    def test_in_the_middle_leaves_the_unsent_to_the_next_poll(self, post, due, now):
        """What was sent keeps its lease; what was not is sent at once when the broker is back, with no move between."""
        keep_paces({"job.one": 0.02}, using="default")
        for _ in range(25):
            due()
        post.room = 1

        with pytest.raises(BrokerUnavailable):
            dispatch(sender=post, now=now, using="default")
        post.room = 100
        done = dispatch(sender=post, now=now, using="default")

        assert (done.sent, done.resent) == (0, 15)
        assert sorted(post.task_ids) == sorted(ScheduledTask.objects.values_list("pk", flat=True))
        assert states() == ["pending"] * 25

    def test_has_what_it_did_not_take_again_sent_as_soon_as_it_is_back(self, post, due, now):
        """Neither twice the wait nor more of the log for a message that was not sent."""
        due()
        dispatch(sender=post, now=now, using="default")
        run_out()
        entries = LogEntry.objects.count()

        for room in (1, 1, 1):
            post.room = room
            with pytest.raises(BrokerUnavailable):
                dispatch(sender=post, now=now, using="default")
        post.room = 100
        done = dispatch(sender=post, now=now, using="default")

        assert (done.resent, len(post.sent)) == (1, 2)
        assert LogEntry.objects.count() == entries + 1
        row = ScheduledTask.objects.get()
        assert timedelta(seconds=16) < row.lease_expires_at - datetime.now(UTC) < timedelta(seconds=31)

    def test_in_the_middle_of_what_is_sent_again_takes_the_rest_next_time(self, post, due, now):
        for _ in range(3):
            due()
        for _ in range(3):
            dispatch(sender=post, now=now, using="default")
        for row in ScheduledTask.objects.all():  # Messages of three claims.
            ScheduledTask.objects.filter(pk=row.pk).update(claim_token=uuid4())
        run_out()
        post.room = len(post.sent) + 1

        with pytest.raises(BrokerUnavailable):
            dispatch(sender=post, now=now, using="default")
        post.room = 100
        done = dispatch(sender=post, now=now, using="default")

        assert done.resent == 2
        assert set(post.task_ids[3:]) == set(ScheduledTask.objects.values_list("pk", flat=True))


class TestWait:
    @pytest.fixture
    def full(self, due, settings, monkeypatch):
        """Room for two of four tasks; each time somebody sleeps, workers end what is on its way. Gives the sleeps."""
        settings.TIMELINE = {"MAX_PENDING": 2, "POLL_INTERVAL": timedelta(minutes=1)}
        for _ in range(4):
            due()
        sleeps = []

        def sleep(seconds):
            sleeps.append(seconds)
            on_their_way = ScheduledTask.objects.filter(state=State.PENDING)
            on_their_way.update(
                state=State.CANCELLED, reason_code="operator", finished_at=MOMENT, lease_expires_at=None
            )

        monkeypatch.setattr("timeline.dispatch.poll.sleep", sleep)
        return sleeps

    def test_is_for_room_while_more_is_ready(self, post, full, now):
        done = dispatch(sender=post, wait=True, now=now, using="default")

        assert (done.sent, len(full)) == (4, 1)

    def test_is_left_to_the_next_poll_otherwise(self, post, full, now):
        done = dispatch(sender=post, now=now, using="default")

        assert (done.sent, full) == (2, [])

    def test_ends_with_the_poll_interval(self, post, full, now, settings):
        settings.TIMELINE = {"MAX_PENDING": 2, "POLL_INTERVAL": timedelta(microseconds=1)}

        done = dispatch(sender=post, wait=True, now=now, using="default")

        assert (done.sent, full) == (2, [])


class TestDeadWorkers:
    def test_have_their_tasks_sent_in_the_same_poll(self, post, make_task, now):
        row = make_task(task_key="job.one", state=State.ACTIVE, attempt=1)
        run_out()

        done = dispatch(sender=post, now=now, using="default")

        assert (done.rescued, done.staged, done.sent) == (1, 1, 1)
        assert post.task_ids == [row.pk]


class TestStatements:
    def test_are_the_same_for_ten_as_for_a_hundred(self, post, due, now, statements_of):
        keep_paces({"job.one": 0.001}, using="default")
        made = []
        for number in (10, 100):
            for _ in range(number):
                due()
            Identity.objects.update(polled_at=None)
            made.append(statements_of(lambda: dispatch(sender=post, now=now, using="default")))

        assert made[0] == made[1]
        assert len(post.task_ids) == 110


class Tidying(Timeline):
    starts_on = hourly(zone="UTC")

    @task(after())
    def tidy(self):
        return None


class TestTheClock:
    def test_begins_runs_in_a_whole_poll(self, post):
        with only_timelines(Tidying):
            dispatch(sender=post, whole=False, now=MOMENT, using="default")
            assert not ScheduledTask.objects.exists()

            dispatch(sender=post, now=MOMENT, using="default")

        assert ScheduledTask.objects.get().scheduled_at == MOMENT + timedelta(hours=1)

    def test_sends_what_its_slot_makes_due_in_the_same_poll(self, post):
        with only_timelines(Tidying):
            dispatch(sender=post, now=MOMENT, using="default")
            first = ScheduledTask.objects.get()

            dispatch(sender=post, now=MOMENT + timedelta(hours=1, seconds=1), using="default")

        assert post.task_ids == [first.pk]
        assert ScheduledTask.objects.count() == 2


class TestHolds:
    @pytest.fixture
    def poll(self, make_task, now):
        """Poll with ten tasks due; gives the statements and the broker."""

        def run(**columns):
            post = Post()
            with only_timelines(Job):
                for _ in range(10):
                    make_task(task_key="job.one", state=State.AVAILABLE, **columns)
                with CaptureQueriesContext(connection) as caught:
                    dispatch(sender=post, now=now, using="default")
            return [query["sql"] for query in caught], post

        return run

    def test_cost_a_poll_no_statement_where_there_are_none(self, poll):
        """They are asked for in statements that ask for something else."""
        statements, post = poll()

        about_holds = [sql for sql in statements if "timeline_hold" in sql]
        assert all("timeline_identity" in sql or "timeline_scheduledtask" in sql for sql in about_holds)
        assert len(post.task_ids) == 10

    def test_of_kinds_leave_them_out_and_let_others_go(self, poll, make_task, now):
        Hold.objects.create(scope="task", target="job.one", reason="x", created_at=now)
        other = make_task(task_key="job.two", state=State.AVAILABLE)

        _statements, post = poll()

        assert post.task_ids == [other.pk]

    def test_of_entities_pass_over_their_tasks_in_as_many_statements_for_many(self, poll, make_task, now):
        def held(key):
            names = [["testapp.order", key]]
            columns = {"entity_label": "testapp.order", "entity_id": key, "names": names}
            Hold.objects.create(scope="entity", reason="x", created_at=now, **columns)

        held("7")
        poll(entity_label="testapp.order", entity_id="7")  # The first leaves a sign.
        few, post = poll(entity_label="testapp.order", entity_id="7")
        for key in range(100, 150):
            held(str(key))
        many, _post = poll(entity_label="testapp.order", entity_id="7")
        free = make_task(task_key="job.one", state=State.AVAILABLE, entity_label="testapp.order", entity_id="8")
        _statements, last = poll(entity_label="testapp.order", entity_id="7")

        assert post.task_ids == []
        assert len(few) == len(many)
        assert last.task_ids == [free.pk]

    def test_are_released_when_their_time_has_come(self, poll, now):
        """In the same poll: what is due goes on its way."""
        held = Hold.objects.create(scope="everything", reason="x", created_at=now - timedelta(1), until=now)

        _statements, post = poll()

        held.refresh_from_db()
        assert held.released_at == now
        assert len(post.task_ids) == 10
