"""Fan out: what a handler wants of another task is there with its outcome, or not at all."""

from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from tests.engine import conftest as engine
from tests.engine.watching import AtEntry
from tests.features.fan_out.settlement import (
    TWO,
    fan_out_two,
    fan_out_two_and_wait,
    row_of,
    rows_of,
    settlement,
    states_of,
)
from tests.testapp.models import Order
from timeline import Cancel, Retry, Timeline, after, each_of, step, task
from timeline.dispatch.rescue import rescue
from timeline.engine.attempts import begin_attempts
from timeline.engine.groups import Keeper, Watch, run
from timeline.exceptions import InvalidInput
from timeline.features.fan_out.fanned_rows import FannedOut
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.leave import leave
from timeline.store.kept_statements import COMPLETE
from timeline.testing import only_timelines

again = engine.again  # Fixtures.

SIMPLE = [
    pytest.param({"atomic": True}, id="atomic"),
    pytest.param({"atomic": "own"}, id="own"),
    pytest.param({"atomic": "shared"}, id="shared"),
    pytest.param({"atomic": False}, id="plain"),
    pytest.param({"atomic": False, "timeout": timedelta(minutes=1)}, id="plain, in time"),
]


@pytest.fixture
def declared(now, start_at):
    """Have a settlement known and started for so many orders: ``declared(split, …)`` gives the rows of ``split``."""
    with ExitStack() as known:

        def declare(*handlers, count=1, **options):
            known.enter_context(only_timelines(settlement(*handlers, **options)))
            for _ in range(count):
                start_at("settlement", Order.objects.create(), now)
            return rows_of("split")

        yield declare


@pytest.fixture
def run_rows(later):
    """Run rows together at a moment."""

    def run_together(rows, at=None, **given):
        return run(task_ids=[row.pk for row in rows], clock=lambda: at or later, using="default", **given)

    return run_together


def assert_fanned_out(rows, at):
    assert [(row.occurrence, row.payload, row.state) for row in rows] == [
        (occurrence, payload, State.AVAILABLE) for occurrence, payload in TWO.items()
    ]
    for row in rows:
        assert (row.anchor, row.anchor_value, row.nominal_at, row.scheduled_at) == ("each:split", at, at, at)


class TestWhatAHandlerFansOut:
    @pytest.mark.parametrize("options", SIMPLE)
    def test_is_there_with_its_outcome(self, declared, run_rows, later, options, transactional_db):
        [done] = run_rows(declared(fan_out_two, **options))

        assert done.state == State.COMPLETED
        assert_fanned_out(rows_of("settle"), later)
        assert rows_of("report") == rows_of("clean_up") == []
        assert TimelineRun.objects.get().is_open

    def test_is_there_with_that_of_an_async_one(self, declared, run_rows, later, transactional_db):
        run_rows(declared(fan_out_two_and_wait, atomic=False))

        assert_fanned_out(rows_of("settle"), later)

    @pytest.mark.parametrize("options", SIMPLE)
    def test_is_there_for_each_of_a_group(self, declared, run_rows, options, transactional_db):
        """Of different runs, whose outcomes are written together where that is done."""
        rows = declared(fan_out_two, count=5, **options)

        run_rows(rows)

        made = {(row.entity_id, row.occurrence) for row in rows_of("settle")}
        assert made == {(row.entity_id, occurrence) for row in rows for occurrence in TWO}
        assert len(rows_of("settle")) == 10

    def test_has_the_options_of_its_own_task_and_the_cause_of_the_run(self, declared, run_rows, later, emit_at, now):
        each = {"priority": 7, "queue": "slow", "retry": Retry(max_attempts=3), "expires": timedelta(hours=1)}
        [row] = declared(each=each)
        event = emit_at("order.split", Order.objects.get(), now).event
        TimelineRun.objects.update(started_by=event)

        run_rows([row])

        for made in rows_of("settle"):
            assert (made.priority, made.queue, made.max_attempts) == (7, "slow", 3)
            assert made.expires_at == later + timedelta(hours=1)
            assert (made.cause_id, made.run_id, made.revision, made.previous_id) == (event.pk, row.run_id, 1, None)

    def test_may_be_names_alone_and_come_in_several_calls(self, declared, run_rows):
        def split(job):
            job.fan_out(job.settle, ["002"])
            job.fan_out(type(job).settle, (name for name in ["001"]))

        run_rows(declared(split))

        assert [(row.occurrence, row.payload) for row in rows_of("settle")] == [("001", {}), ("002", {})]

    def test_is_what_it_was_when_it_was_said(self, declared, run_rows):
        def split(job):
            payload = {"first": 1}
            job.fan_out(job.settle, {"001": payload})
            payload["first"] = object()

        run_rows(declared(split))

        assert row_of("settle", "001").payload == {"first": 1}

    def test_is_nothing_if_it_says_nothing(self, declared, run_rows, later):
        """The followers come at once: there is nothing to wait for."""
        run_rows(declared(lambda job: job.fan_out(job.settle, {})))

        assert rows_of("settle") == []
        assert [row.anchor_value for row in (row_of("report"), row_of("clean_up"))] == [later, later]


class TestNothingIsFannedOut:
    @pytest.mark.parametrize("options", SIMPLE)
    @pytest.mark.parametrize("raised", [ValueError("boom"), Cancel("no")])
    def test_by_an_attempt_that_does_not_complete(self, declared, run_rows, options, raised, transactional_db):
        def split(job):
            fan_out_two(job)
            raise raised

        run_rows(declared(split, **options))

        assert rows_of("settle") == []

    def test_but_by_the_attempt_that_does(self, declared, run_rows, later):
        def split(job):
            job.fan_out(job.settle, [f"of attempt {job.task.attempt}"])
            if job.task.attempt == 1:
                raise ValueError("boom")

        [row] = declared(split)
        run_rows([row])
        run_rows([row], later + timedelta(hours=1))

        assert states_of("settle") == {"of attempt 2": State.AVAILABLE}

    @pytest.mark.parametrize("atomic", [True, False])
    def test_by_one_that_was_cancelled_meanwhile(self, declared, run_rows, later, atomic):
        def call_off(task):
            cancel(task_ids=[task.pk], reason=Reason.operator("no", "ada"), now=later, using="default")

        run_rows(declared(fan_out_two, atomic=atomic), watch=AtEntry(call_off))

        assert row_of("split").state == State.CANCELLED
        assert rows_of("settle") == []

    def test_by_one_that_is_lost_with_its_worker(self, declared, later, let_lease_run_out):
        [row] = declared()
        [attempt] = begin_attempts([row.pk], token=None, worker="", now=later, using="default")
        let_lease_run_out(attempt.task)

        rescue(now=later, using="default")

        assert row_of("split").state == State.RETRYABLE
        assert rows_of("settle") == []

    def test_in_shadow(self, declared, run_rows):
        run_rows(declared(in_shadow=True))

        assert row_of("split").reason_code == "shadow"
        assert rows_of("settle") == []
        assert row_of("report").state == State.AVAILABLE

    def test_in_a_run_that_its_handler_has_ended(self, declared, run_rows, later):
        def split(job):
            fan_out_two(job)
            order = Order.objects.get(pk=job.task.entity_id)
            leave(timeline="settlement", entity=order, key="", reason="enough", actor="", now=later, using="default")

        [done] = run_rows(declared(split))

        assert done.state == State.COMPLETED
        assert rows_of("settle") == []
        assert TimelineRun.objects.get().end_reason == "enough"

    @pytest.mark.parametrize("atomic", [True, False])
    def test_if_its_rows_cannot_be_written(self, declared, run_rows, later, atomic, transactional_db):
        """Neither is the outcome: both are one transaction. It is a failed attempt, and the next one does it."""
        [row] = declared(fan_out_two, atomic=atomic)

        with connection.execute_wrapper(Refusing("INSERT INTO")):
            run_rows([row])

        assert (row_of("split").state, row_of("split").attempt) == (State.RETRYABLE, 1)
        assert rows_of("settle") == []
        run_rows([row], later + timedelta(hours=1))
        assert len(rows_of("settle")) == 2


class Refusing:
    """A database that refuses new tasks."""

    def __init__(self, verb):
        self.verb = verb

    def __call__(self, execute, sql, parameters, many, context):
        if sql.startswith(self.verb) and "timeline_scheduledtask" in sql:
            raise ValueError("refused")
        return execute(sql, parameters, many, context)


class Away:
    """A database that is away, for outcomes."""

    is_away = True

    def __call__(self, execute, sql, parameters, many, context):
        is_outcome = "UPDATE timeline_scheduledtask" in sql or COMPLETE.function in sql
        if self.is_away and is_outcome and "completed" in str(parameters):
            raise OperationalError("the connection is lost") from ConnectionError()
        return execute(sql, parameters, many, context)


class Keeping(Keeper):
    """Keeps outcomes until the test tries again."""

    def __init__(self):
        self.kept = []

    def keep(self, task, again):
        self.kept.append(again)


class WithKeeper(Watch):
    """Of a worker that has outcomes kept."""

    def __init__(self, keeping):
        self.keeping = keeping

    def keeper(self):
        return self.keeping


class TestAnOutcomeThatIsKept:
    def test_has_what_was_fanned_out_once_it_is_written(self, declared, run_rows, later, transactional_db):
        keeping, away = Keeping(), Away()
        with connection.execute_wrapper(away):
            run_rows(declared(fan_out_two, atomic=False), watch=WithKeeper(keeping))
            assert rows_of("settle") == []

            away.is_away = False
            assert [again() for again in keeping.kept] == [True]

        assert_fanned_out(rows_of("settle"), later)


class TestFanOut:
    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            pytest.param(lambda job: job.fan_out(job.report, ["1"]), "task: report is not fanned out.", id="after"),
            pytest.param(lambda job: job.fan_out(len, ["1"]), "is no task of this timeline", id="no task"),
            pytest.param(lambda job: job.fan_out("settle", ["1"]), "is no task of this timeline", id="a name"),
            pytest.param(lambda job: job.fan_out(job.settle, "001"), "occurrences: is a str.", id="text"),
            pytest.param(lambda job: job.fan_out(job.settle, 5), "occurrences: is a int.", id="a number"),
            pytest.param(lambda job: job.fan_out(job.settle, [1]), "occurrence: 1 is not allowed.", id="not text"),
            pytest.param(lambda job: job.fan_out(job.settle, [""]), "occurrence: '' is not allowed.", id="empty"),
            pytest.param(lambda job: job.fan_out(job.settle, ["x" * 101]), "1 to 100 characters", id="long"),
            pytest.param(lambda job: job.fan_out(job.settle, ["1", "1"]), "1 is given twice.", id="twice"),
            pytest.param(
                lambda job: [job.fan_out(job.settle, ["1"]) for _ in range(2)], "1 is given twice.", id="in two calls"
            ),
            pytest.param(
                lambda job: job.fan_out(job.settle, map(str, range(10_001))), "more than 10,000.", id="too many"
            ),
            pytest.param(
                lambda job: [job.fan_out(job.settle, [f"{n} {i}" for i in range(6_000)]) for n in range(2)],
                "more than 10,000.",
                id="too many in two calls",
            ),
            pytest.param(
                lambda job: job.fan_out(job.settle, {str(n): {"text": "x" * 60_000} for n in range(300)}),
                "more than 16 MiB together",
                id="too large together",
            ),
            pytest.param(
                lambda job: [
                    job.fan_out(job.settle, {f"{n} {i}": {"text": "x" * 60_000} for i in range(150)}) for n in range(2)
                ],
                "more than 16 MiB together",
                id="too large in two calls",
            ),
            pytest.param(lambda job: job.fan_out(job.settle, {"1": [2]}), "payload: of 1 is a list.", id="no dict"),
            pytest.param(lambda job: job.fan_out(job.settle, {"1": {"a": {2}}}), "payload: has a set", id="no JSON"),
            pytest.param(
                lambda job: job.fan_out(job.settle, {"1": {"a": "x" * 70_000}}), "payload: ", id="a large payload"
            ),
        ],
    )
    def test_refuses_what_it_cannot_do(self, declared, run_rows, wrong, said):
        """With field and remedy; the attempt has failed, and nothing of it is there."""

        def split(job):
            job.fan_out(job.settle, ["fine"])
            wrong(job)

        [done] = run_rows(declared(split))

        assert done.state == State.RETRYABLE
        assert said in done.error
        assert rows_of("settle") == []

    def test_forgets_a_call_that_was_refused_and_no_other(self, declared, run_rows):
        def split(job):
            job.fan_out(job.settle, ["fine"])
            with pytest.raises(InvalidInput, match="Give each occurrence of a task once"):
                job.fan_out(job.settle, ["new", "fine"])

        run_rows(declared(split))

        assert states_of("settle") == {"fine": State.AVAILABLE}

    def test_refuses_the_task_of_another_timeline(self, declared, run_rows):
        other = settlement()

        [done] = run_rows(declared(lambda job: job.fan_out(other.settle, ["1"])))

        assert "is no task of this timeline" in done.error

    def test_refuses_a_task_that_another_one_fans_out(self, declared, run_rows, later):
        [row] = declared(fan_out_two, fan_out_two)
        run_rows([row])

        [done, _other] = run_rows(rows_of("settle"))

        assert "settle is fanned out by split, not by settle." in done.error

    def test_refuses_an_ad_hoc_task(self, declared, run_rows, schedule_at, later):
        declared()
        row = schedule_at("settlement.split", Order.objects.get(), later, later).task

        [done] = run_rows([row])

        assert "fan_out: cannot be called by an ad hoc task" in done.error

    def test_refuses_a_step(self, run_rows, order, start_at, now):
        class Settlement(Timeline):
            entity = "testapp.Order"

            @task(after(), atomic=False)
            def split(self, order):
                self.look(order)

            @step
            def look(self, order):
                self.fan_out(self.settle, ["1"])

            @task(each_of(split))
            def settle(self, order): ...

        with only_timelines(Settlement):
            start_at("settlement", order, now)
            [done] = run_rows(rows_of("split"))

        assert "fan_out: cannot be called within a step" in done.error

    def test_refuses_a_call_for_many(self, run_rows, order, start_at, now):
        class Settlement(Timeline):
            entity = "testapp.Order"

            @task(after())
            def split(self, order): ...

            @task(after(), bulk=10)
            def remind(self, orders):
                self.fan_out(self.settle, ["1"])

            @task(each_of(split))
            def settle(self, order): ...

        with only_timelines(Settlement):
            start_at("settlement", order, now)
            [done] = run_rows(rows_of("remind"))

        assert "fan_out: cannot be called by a call for many." in done.error

    def test_refuses_what_comes_when_the_handler_has_ended(self):
        Settlement = settlement()
        fanned_out = FannedOut(Settlement.split, in_run=True)
        fanned_out.want(Settlement.settle, {"1": {}})

        assert fanned_out.end() == {"settle": {"1": {}}}
        with pytest.raises(InvalidInput, match="the handler has ended"):
            fanned_out.want(Settlement.settle, {"2": {}})


class TestAHandlerOfABatch:
    def test_knows_which_it_is(self, declared, run_rows):
        told = []
        run_rows(declared(fan_out_two, lambda job: told.append((job.task.occurrence, job.task.payload["first"]))))

        run_rows(rows_of("settle"))

        assert told == [("001", 1), ("002", 101)]

    def test_has_a_key_of_its_own_for_who_is_called_outside(self, declared, run_rows):
        keys = set()
        run_rows(declared(fan_out_two, lambda job: keys.add(job.idempotency_key)))

        run_rows(rows_of("settle"))

        assert keys == {row.pk for row in rows_of("settle")}
        assert ScheduledTask.objects.filter(state=State.COMPLETED).count() == 3
