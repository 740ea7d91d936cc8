"""Timers: rows that move a machine when nothing else has; how long they wait, and when they do nothing."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

import pytest

from tests.machines import is_whole
from tests.testapp.models import Order
from timeline import OPEN, STAY, WORKING, Machine, Retry, Then, after, at, before, every, never, on, task, wait_for
from timeline.engine.attempts import begin_attempts
from timeline.engine.groups import run
from timeline.exceptions import DefinitionError
from timeline.features.machines.outcomes import decided
from timeline.lifecycle import ReasonCode, State, Trigger
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.registry import Registry
from timeline.shortcuts import cancel, emit, explain, reconcile, start
from timeline.store.transition import Write
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


class S(StrEnum):
    WORKS = "works"
    ALSO_WORKS = "also_works"
    ASKED = "asked"
    RELEASE = "release"
    RETRIES = "retries"
    OPERATOR = "operator"
    OVER = "over"


RETRY = Retry(base=timedelta(seconds=30), factor=2, cap=timedelta(hours=1), max_attempts=4, jitter=0)


class Job(Machine):
    """Every rest has a timer of another kind."""

    entity = "testapp.Order"
    initial = S.WORKS
    working = (S.WORKS, S.ALSO_WORKS)
    table = {
        S.WORKS: {"code.asked": S.ASKED, "closed": S.RELEASE, "further": S.ALSO_WORKS},
        S.ALSO_WORKS: {"back": S.WORKS, "done": S.OVER},
        S.ASKED: {"code.given": S.WORKS, "asked.again": STAY, "code.late": S.OPERATOR},
        S.RELEASE: {"release.reached": S.WORKS},
        S.RETRIES: {"retry.due": S.WORKS, "retries.used_up": S.OPERATOR},
        S.OPERATOR: {"helped": S.WORKS, "nobody.came": STAY},
        S.OVER: {},
        WORKING: {"failed": S.RETRIES},
        OPEN: {"given.up": S.OVER},
    }
    timers = {
        "code.late": after(S.ASKED, minutes=10),
        "release.reached": at("ships_at"),
        S.RELEASE: never,  # ships_at may be empty.
        "retry.due": after(S.RETRIES, backoff=RETRY, spent="retries.used_up"),
        "nobody.came": on(S.OPERATOR, hours=4),
    }


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Job):
        yield


@pytest.fixture
def job():
    order = Order.objects.create()
    start(Job, order)
    return order


def state():
    run_ = TimelineRun.objects.get()
    assert is_whole(run_)
    return run_.state


def timers():
    return [
        (row.task_name, row.occurrence, (row.scheduled_at - row.anchor_value).total_seconds())
        for row in ScheduledTask.objects.filter(finished_at=None)
    ]


class TestATimer:
    def test_moves_the_machine_at_its_time_and_not_before(self, job, clock):
        emit("code.asked", job)

        clock.advance(minutes=9, seconds=59)
        assert (state(), timers()) == (S.ASKED, [("timer:code.late", "1", 600.0)])
        clock.advance(seconds=2)

        assert state() == S.OPERATOR
        row = ScheduledTask.objects.get(task_key="job.timer:code.late")
        assert (row.state, row.reason_code, row.result) == (State.COMPLETED, ReasonCode.DONE, {"then": "code.late"})
        assert Event.objects.get(name="code.late").actor == "job.timer:code.late"
        assert timers() == [("timer:nobody.came", "2", 4 * 3600)]

    def test_is_cancelled_when_its_state_is_left(self, job, clock):
        emit("code.asked", job)
        emit("code.given", job)

        row = ScheduledTask.objects.get()
        assert (row.state, row.reason_code) == (State.CANCELLED, ReasonCode.STATE)
        clock.advance(hours=1)
        assert state() == S.WORKS

    def test_begins_anew_when_its_state_is_entered_anew(self, job, clock):
        emit("code.asked", job)
        clock.advance(minutes=8)
        emit("asked.again", job)

        clock.advance(minutes=8)
        assert state() == S.ASKED
        clock.advance(minutes=3)
        assert state() == S.OPERATOR

    def test_that_stays_comes_again_and_again(self, job, clock):
        emit("code.asked", job)
        clock.advance(hours=13)

        assert [event.name for event in Event.objects.order_by("pk")][-3:] == ["nobody.came"] * 3
        assert state() == S.OPERATOR

    def test_called_off_by_a_person_comes_no_more_in_this_visit(self, job, clock):
        emit("code.asked", job)
        cancel(ScheduledTask.objects.get(), reason="we wait")
        clock.advance(hours=1)
        assert state() == S.ASKED

        emit("asked.again", job)
        clock.advance(minutes=11)
        assert state() == S.OPERATOR

    def test_does_nothing_in_another_visit_whatever_that_takes(self, job, clock):
        """A process of old code moved the run there and back, and knows no timers."""
        emit("code.asked", job)
        row = ScheduledTask.objects.get()
        bare = type("Job", (Job,), {"timers": {tuple(Job.definition.machine.rests): never}})
        with only_timelines(bare):
            emit("asked.again", job)

        clock.set(clock.now + timedelta(minutes=10))
        [ended] = run(task_ids=[row.pk], clock=lambda: clock.now, using="default")

        assert (ended.state, ended.reason_code, state()) == (State.CANCELLED, ReasonCode.STATE, S.ASKED)

    def test_does_nothing_in_another_visit_that_began_after_the_last_look(self, job, clock):
        """Moved meanwhile by a process of old code, which leaves the row: its outcome is decided under the lock of the run."""
        emit("code.asked", job)
        [row] = begin_attempts(
            list(ScheduledTask.objects.values_list("pk", flat=True)),
            token=None,
            worker="",
            now=clock.now + timedelta(minutes=10),
            using="default",
        )
        write = Write(task=row.task, triggers=(Trigger.COMPLETE,), then=Then("code.late"))
        moved = TimelineRun.objects.get()

        [stays] = decided([write], {moved.pk: moved}, now=clock.now, using="default")
        moved.moves += 1
        [left] = decided([write], {moved.pk: moved}, now=clock.now, using="default")

        assert stays == write
        assert (left.triggers, left.then, left.reason.code) == ((Trigger.CANCEL,), None, ReasonCode.STATE)

    def test_is_told_in_words(self, job):
        emit("code.asked", job)

        assert "timer of code.late: 10 minutes after asked is entered" in explain(ScheduledTask.objects.get())


class TestATimerOfAField:
    def test_comes_at_its_time_in_its_state_alone(self, job, clock):
        job.ships_at = clock.now + timedelta(days=3)
        job.save()
        assert timers() == []
        emit("closed", job)

        [row] = ScheduledTask.objects.all()
        assert (row.anchor, row.scheduled_at) == ("field:ships_at", job.ships_at)
        assert "at ships_at, while it is in release" in explain(row)
        clock.advance(days=2)
        assert state() == S.RELEASE
        clock.advance(days=1)
        assert state() == S.WORKS

    def test_follows_the_field(self, job, clock):
        emit("closed", job)
        assert timers() == []

        job.ships_at = clock.now + timedelta(days=3)
        job.save()
        job.ships_at = clock.now + timedelta(days=1)
        job.save()

        clock.advance(days=1)
        assert state() == S.WORKS
        assert ScheduledTask.objects.count() == 1

    def test_that_has_passed_comes_at_once(self, job, clock):
        Order.objects.update(ships_at=clock.now - timedelta(days=1))
        emit("closed", job)

        clock.advance(seconds=0)

        assert state() == S.WORKS


class TestABackoff:
    def fail(self, job):
        emit("failed", job)
        return [(name, seconds) for name, _visit, seconds in timers()]

    def test_waits_longer_each_time_until_it_is_used_up(self, job, clock):
        waits = []
        for _ in range(3):
            waits += self.fail(job)
            clock.advance(hours=1)
            assert state() == S.WORKS
        assert waits == [("timer:retry.due", 30.0), ("timer:retry.due", 60.0), ("timer:retry.due", 120.0)]

        assert self.fail(job) == [("timer:retries.used_up", 0.0)]
        clock.advance(seconds=0)
        assert state() == S.OPERATOR

    def test_begins_anew_after_a_move_between_working_states(self, job, clock):
        for _ in range(2):
            self.fail(job)
            clock.advance(hours=1)
        emit("further", job)

        assert self.fail(job) == [("timer:retry.due", 30.0)]

    def test_does_not_begin_anew_after_a_rest(self, job, clock):
        self.fail(job)
        clock.advance(hours=1)
        emit("code.asked", job)
        emit("code.given", job)

        assert self.fail(job) == [("timer:retry.due", 60.0)]

    def test_is_the_same_however_often_it_is_reconciled(self, job, clock):
        self.fail(job)
        before = list(ScheduledTask.objects.values_list("pk", "seq", "scheduled_at"))

        reconcile(job)

        assert list(ScheduledTask.objects.values_list("pk", "seq", "scheduled_at")) == before


def declare(timers, **options):
    return type("Wrong", (Job,), {"timers": {**Job.timers, **timers}, **options})


class TestDeclaring:
    @pytest.mark.parametrize(
        ("timers", "problem"),
        [
            (
                {"code.lat": on(S.ASKED)},
                "timer of 'code.lat', which is no event of its table. Did you mean 'code.late'",
            ),
            ({"code.late": on("askd")}, "names the state 'askd', which has no row. Did you mean 'asked'"),
            ({"code.late": on(S.RELEASE)}, "timer of 'code.late' in 'release', which does not take that"),
            ({"code.late": 10}, "has a timer of 'code.late': 10"),
            ({"code.late": never}, "says never of 'code.late', which is no rest"),
            ({S.WORKS: never}, "says never of .*works.*, which is no rest"),
            ({S.OVER: never}, "says never of .*over.*, which is no rest"),
            ({S.ASKED: never}, "has something that is due in 'asked', and says never of it"),
            ({"code.late": every(days=1)}, "hangs on another task, on an event or on a series"),
            ({"code.late": wait_for("x", within=timedelta(days=1))}, "hangs on another task"),
            ({"code.late": on(S.ASKED, minutes=-1)}, "timer of 'code.late' that has a negative distance"),
            ({"retries.used_up": on(S.RETRIES)}, "has two timers of 'retries.used_up'"),
            ({"retry.due": on(S.RETRIES, backoff=RETRY, spent="used")}, "timer of 'used', which is no event"),
            (
                {"retry.due": on(S.RETRIES, backoff=RETRY, spent="code.late")},
                "'code.late' in 'retries', which does not",
            ),
        ],
    )
    def test_says_what_is_wrong(self, timers, problem):
        with pytest.raises(DefinitionError, match=problem):
            declare(timers)

    def test_refuses_a_rest_without_a_timer_unless_somebody_says_never(self):
        without = {event: when for event, when in Job.timers.items() if event != "code.late"}

        with pytest.raises(DefinitionError, match="may rest for ever in 'asked'"):
            type("Wrong", (Job,), {"timers": without})
        assert type("Fine", (Job,), {"timers": {**without, S.ASKED: never}}).definition.timers.never == {
            "asked",
            "release",
        }

    def test_takes_no_time_of_a_field_that_may_be_empty_for_a_timer(self):
        without = {event: when for event, when in Job.timers.items() if event is not S.RELEASE}
        body = {"name": "wrong", "timers": without}

        with pytest.raises(DefinitionError) as caught:
            Registry().register(type("Wrong", (Job,), body))

        assert caught.value.problem == (
            "may rest for ever in 'release', where release.reached: at(\"ships_at\") never comes where the field is NULL."
        )
        assert "on('release', days=2)" in caught.value.remedy
        Registry().register(type("Fine", (Job,), body | {"timers": {**without, S.RELEASE: never}}))

    def test_takes_no_time_before_such_a_field(self):
        table = {"a": {"x": "b"}, "b": {}}
        body = {"entity": "testapp.Order", "initial": "a", "table": table, "timers": {"x": before("ships_at", days=1)}}

        with pytest.raises(DefinitionError, match=r"x: before\(\"ships_at\"\) never comes where the field is NULL"):
            Registry().register(type("Wrong", (Machine,), body))

    def test_takes_a_time_of_a_field_that_is_always_set(self):
        table = {"a": {"x": "b"}, "b": {}}
        body = {"entity": "accounts.User", "initial": "a", "table": table, "timers": {"x": at("trial_ends_at")}}

        Registry().register(type("Fine", (Machine,), body))
        with pytest.raises(DefinitionError, match="has something that is due in 'a', and says never of it"):
            Registry().register(type("Wrong", (Machine,), body | {"timers": {"x": at("trial_ends_at"), "a": never}}))

    def test_takes_a_task_of_the_rest_for_a_timer(self):
        def remind(self, order): ...

        without = {event: when for event, when in Job.timers.items() if event != "code.late"}
        type("Fine", (Job,), {"timers": without, "remind": task(on(S.ASKED, days=1))(remind)})

    def test_takes_states_by_their_plain_names(self):
        machine = declare({"code.late": after("asked", minutes=10)})

        assert machine.definition.tasks["timer:code.late"].when.states == ("asked",)

    def test_refuses_a_name_that_is_too_long(self):
        event = "x" * 99
        table = {"a": {event: "b"}, "b": {}}
        with pytest.raises(DefinitionError, match="whose name is too long"):
            type("Wrong", (Machine,), {"initial": "a", "table": table, "timers": {event: on("a")}})

    def test_asks_nothing_of_a_machine_that_only_keeps_a_state(self):
        type("Door", (Machine,), {"initial": "a", "table": {"a": {"x": "b"}, "b": {}}})
