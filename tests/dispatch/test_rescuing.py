"""Rescue: what a dead worker held is run again, and a lost message sent again."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar
from uuid import uuid4

import pytest

from tests.engine.watching import Killed
from tests.machines import is_whole
from tests.testapp.models import Order
from tests.triggers import refusing
from timeline import BACK, WORKING, Machine, Timeline, after, never, on, step, task
from timeline.dispatch.claim import hand_back, messages_of
from timeline.dispatch.rescue import LONGEST_RESEND, rescue
from timeline.engine.groups import run
from timeline.exceptions import WorkerLost
from timeline.features.machines.edges import see_edges
from timeline.lifecycle import LEASED, State
from timeline.models import Edge, ScheduledTask, StepKind, StepRecord, TimelineRun
from timeline.shortcuts import emit
from timeline.testing import only_timelines
from timeline.timelines import Alerts
from timeline.timing import EARLIEST


@pytest.fixture
def lost(make_task):
    """A row whose lease ran out."""
    long_ago = {"lease_expires_at": EARLIEST, "sent_at": EARLIEST}
    return lambda state=State.ACTIVE, **columns: make_task(state=state, **{**long_ago, **columns})


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

    @pytest.mark.parametrize("says_its_task", [True, False])
    @pytest.mark.parametrize(("recorded", "counts"), [(3, 0), (2, 3)])
    def test_begins_anew_where_a_step_was_done_in_it(self, lost, now, recorded, counts, says_its_task):
        row = lost(attempt=3, lost=2)
        StepRecord.objects.create(
            origin=row.pk,
            name="upload",
            task_id=row.pk if says_its_task else None,
            attempt=recorded,
            kind="done",
            recorded_at=now,
            seconds=1,
        )

        rescue(now=now, using="default")

        row.refresh_from_db()
        assert (row.state, row.lost) == (State.RETRYABLE if counts == 0 else State.DISCARDED, counts)

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
            run(task_ids=[row.pk], clock=lambda: now, using="default", watch=Killed())


class TestRescueOfALastAttempt:
    """Its end locks and reads what is the host's: whatever comes of that, it is the end of that task alone."""

    @pytest.fixture
    def last(self, lost, settings):
        """A row that lost its last attempt."""
        settings.TIMELINE = {"MAX_LOST": 1}
        return lambda **columns: lost(attempt=2, **columns)

    @pytest.fixture
    def refused(self, last):
        """Such rows whose end the database refuses: so many."""
        with refusing("NEW.state = 'discarded' AND NEW.task_key = 'trial.refused'"):
            yield lambda count: [last(task_key="trial.refused") for _ in range(count)]

    def test_that_is_refused_costs_no_other_and_is_told_with_its_traceback(self, refused, last, lost, now, caplog):
        [stuck], other, again = refused(1), last(), lost(attempt=1)

        rescued = rescue(now=now, using="default")

        assert (rescued.discarded, rescued.retried) == ([other], [again])
        [said] = [record for record in caplog.records if record.levelname == "ERROR"]
        assert str(stuck.pk) in said.getMessage()
        assert "the trigger says no" in str(said.exc_info[1])

    def test_that_is_refused_makes_room_for_others(self, refused, last, now):
        refused(5)
        other = last()

        first, second = (rescue(limit=5, now=now, using="default") for _ in range(2))

        assert (first.discarded, second.discarded) == ([], [other])

    def test_that_is_refused_is_tried_again(self, refused, now, let_lease_run_out):
        [row] = refused(1)
        rescue(now=now, using="default")
        ScheduledTask.objects.update(task_key="trial.remind")
        let_lease_run_out(row)

        assert rescue(now=now, using="default").discarded == [row]

    def test_of_what_cannot_be_read_costs_no_other(self, last, start_at, order, now, monkeypatch, let_lease_run_out):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1))
            def work(self, order): ...

        def read(*_given):
            raise ValueError("no such value")

        with only_timelines(Job):
            start_at("job", order, now)
            ScheduledTask.objects.update(state=State.ACTIVE, attempt=2, lease_expires_at=EARLIEST)
            other = last(lease_expires_at=EARLIEST + timedelta(days=1))
            monkeypatch.setattr(Order._meta.get_field("note"), "from_db_value", read, raising=False)

            rescued = rescue(now=now, using="default")

        assert other in rescued.discarded

    def test_of_an_entity_that_is_gone_ends_as_well(self, last, now):
        row = last(entity_label="testapp.order", entity_id="4711")

        assert rescue(now=now, using="default").discarded == [row]


class TestTheLastLossOfATaskOfAMachine:
    """It is an answer for the machine, as an error would be: else the run would be in a state that nobody works at."""

    TABLE: ClassVar = {
        "works": {"done": "over", "worker.gone": "people"},
        "people": {"helped": BACK},
        "over": {},
        WORKING: {"unknown": "people"},
    }

    @pytest.fixture
    def lose(self, order, now, settings, let_lease_run_out):
        """Lets the worker of a task that is bound to ``works`` die for the last time; gives its run."""
        settings.TIMELINE = {"MAX_LOST": 1}

        class Died(BaseException): ...

        def lose(means, *, between=lambda row: None, beside=()):
            class Job(Machine):
                entity = "testapp.Order"
                starts_on = "job.wanted"
                initial = "works"
                working = ("works",)
                table = self.TABLE
                timers: ClassVar = {"people": never}
                errors = means

                @task(on("works"), atomic=False)
                def work(self, order):
                    raise Died

                @step(atomic=False, once=True)
                def pay(self): ...

            with only_timelines(Job, *beside):
                emit("job.wanted", order)
                row = ScheduledTask.objects.get()
                for _ in range(2):
                    with pytest.raises(Died):
                        run(task_ids=[row.pk], clock=lambda: now, using="default", watch=Killed())
                    row.refresh_from_db()
                    between(row)
                    let_lease_run_out(row)
                    rescue(now=now, using="default")
            row.refresh_from_db()
            assert (row.state, row.reason_code, row.lost) == (State.DISCARDED, "worker_lost", 1)
            return TimelineRun.objects.get(timeline="job")

        return lose

    @pytest.mark.parametrize(
        ("errors", "event", "state"),
        [
            ({Exception: "unknown"}, "unknown", "people"),
            ({Exception: "unknown", WorkerLost: "worker.gone"}, "worker.gone", "people"),
            ({ValueError: "unknown"}, "job.wanted", "works"),
            ({}, "job.wanted", "works"),
        ],
        ids=["any error", "this one", "another", "none"],
    )
    def test_moves_it_by_the_event_that_it_means(self, lose, errors, event, state):
        moved = lose(errors)

        assert (moved.state, moved.entries.latest("seq").event) == (state, event)
        assert moved.is_open
        assert is_whole(moved)

    def test_leaves_it_where_nobody_knows_whether_a_step_has_happened(self, lose, now):
        def begin(row):
            if row.attempt == 2:
                begun = {"task_id": row.pk, "attempt": 2, "recorded_at": now, "seconds": 0}
                StepRecord.objects.create(origin=row.pk, name="pay", kind=StepKind.BEGUN, **begun)

        stays = lose({Exception: "unknown"}, between=begin)

        assert (stays.state, stays.moves) == ("works", 0)

    def test_leaves_it_where_another_machine_refuses_the_event(self, lose):
        class Other(Machine):
            entity = "testapp.Order"
            starts_on = "job.wanted"
            initial = "one"
            table: ClassVar = {"one": {"gone": "two"}, "two": {"unknown": "one", "end": "three"}, "three": {}}
            timers: ClassVar = {("one", "two"): never}

        stays = lose({Exception: "unknown"}, beside=[Other])

        assert (stays.state, stays.moves) == ("works", 0)

    def test_leaves_it_where_another_machine_needs_more_than_the_event_says(self, lose):
        class Other(Machine):
            entity = "testapp.Order"
            starts_on = "other.wanted"
            key = ("number",)
            initial = "one"
            table: ClassVar = {"one": {"unknown": "two"}, "two": {}}
            timers: ClassVar = {"one": never}

        stays = lose({Exception: "unknown"}, beside=[Other])

        assert (stays.state, stays.moves) == ("works", 0)

    def test_moves_it_where_the_database_has_lost_its_moves(self, lose, django_capture_on_commit_callbacks):
        """It was restored from a copy, say: the process, which knows that it wrote them, writes them anew at its next try."""

        def restore(_row):
            with django_capture_on_commit_callbacks(execute=True):
                see_edges(using="default")
            Edge.objects.all().delete()

        moved = lose({Exception: "unknown"}, between=restore)

        assert (moved.state, moved.moves) == ("people", 1)
        assert is_whole(moved)

    def test_leaves_it_where_the_database_refuses_the_move_each_time(self, lose):
        with refusing("NEW.state = 'people'", of=TimelineRun):
            stays = lose({Exception: "unknown"})

        assert (stays.state, stays.moves) == ("works", 0)

    def test_is_told_to_people_all_the_same(self, lose, settings):
        settings.TIMELINE |= {"ALERTS": ["ada@example.com"]}

        lose({Exception: "unknown"}, beside=[Alerts])

        alert = ScheduledTask.objects.get(task_key="alerts.tell")
        assert alert.payload["about"] == "job.work"


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

    def test_waits_twice_as_long_each_time_up_to_an_hour(self, lost, now, let_lease_run_out):
        row = lost(State.PENDING)
        waits = []

        for _ in range(9):
            rescue(now=now, using="default")
            row.refresh_from_db()
            waits.append(round((row.lease_expires_at - datetime.now(UTC)) / timedelta(seconds=1)))
            assert rescue(now=now, using="default").resend == []
            let_lease_run_out(row)

        assert waits == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
        assert timedelta(hours=1) == LONGEST_RESEND

    def test_that_could_not_be_sent_counts_when_it_is(self, lost, now):
        """Neither a second entry nor a longer wait for one that the broker did not take."""
        row = lost(State.PENDING, claim_token=uuid4())
        for _ in range(3):
            hand_back(messages_of(rescue(now=now, using="default").resend), using="default")

        assert rescue(now=now, using="default").resend == [row]

        row.refresh_from_db()
        assert row.log.get().detail == {"resend": 1}
        assert timedelta(seconds=25) < row.lease_expires_at - row.sent_at < timedelta(seconds=31)

    def test_that_a_worker_gave_back_as_it_stopped_is_none(self, make_task, now):
        """No message is lost by a deployment, so the next one that is lost is not waited for any longer."""
        ahead = datetime.now(UTC) + timedelta(seconds=15)
        row = make_task(state=State.PENDING, claim_token=uuid4(), sent_at=EARLIEST, lease_expires_at=ahead)
        hand_back(messages_of([row]), using="default")

        assert rescue(now=now, using="default").resend == [row]

        row.refresh_from_db()
        assert not row.log.exists()
        assert timedelta(seconds=10) < row.lease_expires_at - row.sent_at < timedelta(seconds=16)

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
