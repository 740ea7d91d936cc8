"""Loops: a step for many rows, batch by batch, of which each is done once."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.engine import conftest as engine
from tests.testapp.models import Effect, Order
from timeline import Retry, RetryAfter, Timeline, after, step, task
from timeline.definition.context import step_under_way
from timeline.features.steps.loops import Course
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind, StepRecord

again, declared, journal = engine.again, engine.declared, engine.journal  # Fixtures.


@pytest.fixture
def notes():
    """So many rows to go through, and their keys."""
    Effect.objects.bulk_create(Effect(name=f"row {number}") for number in range(10))
    return list(Effect.objects.order_by("pk").values_list("pk", flat=True))


def settling(journal, *, atomic, rows=lambda: Effect.objects.filter(name__startswith="row"), size=4, **options):
    """One loop over rows, then a call."""

    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False, **options)
        def work(self, order):
            sums = self.each(self.settle, rows(), size=size)
            self.report(sums)
            return sums

        @step(atomic=atomic)
        def settle(self, batch):
            Effect.objects.filter(pk__in=[row.pk for row in batch]).update(name="settled")
            journal.do(len(batch))
            journal.keys.append(self.step.idempotency_key)
            return {"settled": len(batch), "half": len(batch) / 2}

        @step(atomic=False)
        def report(self, sums):
            journal.do("report")

    journal.keys = []
    return Job


@pytest.mark.parametrize("atomic", [True, False])
class TestALoop:
    def test_takes_all_rows_batch_by_batch(self, declared, run_at, later, journal, notes, atomic):
        row = declared(settling(journal, atomic=atomic))

        done = run_at(row, later)

        assert (done.state, done.result) == (State.COMPLETED, {"settled": 10, "half": 5.0})
        assert journal.done == [4, 4, 2, "report"]
        assert journal.keys == [f"{row.pk}:settle:{notes[place]}" for place in (0, 4, 8)]
        record = StepRecord.objects.get(name="settle")
        assert (record.kind, record.done, record.total, record.place) == (StepKind.DONE, 10, 10, None)
        assert (record.result, record.attempt) == ({"settled": 10, "half": 5.0}, 1)

    def test_goes_on_where_it_failed(self, declared, run_at, later, again, journal, notes, atomic):
        row = declared(settling(journal, atomic=atomic))
        journal.fails = [2]

        assert run_at(row, later).state == State.RETRYABLE
        record = StepRecord.objects.get()
        assert (record.kind, record.done, record.total) == (StepKind.LOOP, 8, 10)
        assert record.place["after"] == notes[7]
        assert record.place.get("keys") == (None if atomic else notes[8:])
        done = again(row)

        assert done.result == {"settled": 10, "half": 5.0}
        assert journal.done == [4, 4, 2, 2, "report"]
        assert journal.keys == [f"{row.pk}:settle:{notes[place]}" for place in (0, 4, 8)]
        assert not Effect.objects.filter(name__startswith="row").exists()

    def test_of_no_rows_is_done(self, declared, run_at, later, journal, atomic):
        done = run_at(declared(settling(journal, atomic=atomic)), later)

        assert (done.state, done.result) == (State.COMPLETED, {})
        assert journal.done == ["report"]
        assert StepRecord.objects.get(name="settle").total == 0

    def test_that_is_done_is_passed_over(self, declared, run_at, later, again, journal, notes, atomic):
        row = declared(settling(journal, atomic=atomic))
        journal.fails = ["report"]
        run_at(row, later)

        assert again(row).result == {"settled": 10, "half": 5.0}
        assert journal.done == [4, 4, 2, "report", "report"]

    def test_counts_failures_anew_behind_each_batch(self, declared, run_at, later, again, journal, notes, atomic):
        row = declared(settling(journal, atomic=atomic, size=3, retry=Retry(max_attempts=2)))
        journal.fails = [3, 3, 1]
        rests = run_at(row, later)

        assert (rests.state, rests.failures) == (State.RETRYABLE, 1)
        assert again(row).state == State.DISCARDED

    def test_of_a_batch_that_fails_for_ever_ends(self, declared, run_at, later, again, journal, notes, atomic):
        row = declared(settling(journal, atomic=atomic, retry=Retry(max_attempts=3)))
        journal.fails = [2] * 3

        assert [run_at(row, later).state, again(row).state, again(row).state] == [
            State.RETRYABLE,
            State.RETRYABLE,
            State.DISCARDED,
        ]

    def test_stops_once_it_is_not_its_workers(self, declared, run_at, later, journal, notes, atomic):
        row = declared(settling(journal, atomic=atomic))
        journal.do = lambda what: ScheduledTask.objects.filter(pk=row.pk).update(attempt=2)

        assert run_at(row, later) is None
        assert len(journal.keys) == 1

    def test_reads_its_rows_by_the_key_whatever_their_order(self, declared, run_at, later, journal, notes, atomic):
        rows = Effect.objects.filter(name__startswith="row").order_by("-name").reverse()

        run_at(declared(settling(journal, atomic=atomic, rows=lambda: rows)), later)

        assert journal.done == [4, 4, 2, "report"]

    def test_takes_all_rows_whatever_the_step_makes_of_its_list(self, declared, run_at, later, notes, atomic):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                return self.each(self.settle, Effect.objects.all(), size=4)

            @step(atomic=atomic)
            def settle(self, batch):
                taken = 0
                while batch:
                    taken += bool(batch.pop())
                return {"taken": taken}

        assert run_at(declared(Job), later).result == {"taken": 10}

    def test_that_is_renamed_goes_on_and_back(self, declared, run_at, later, again, journal, notes, atomic):
        old = settling(journal, atomic=atomic)
        row = declared(old)
        journal.fails = [2]
        run_at(row, later)

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                return self.each(self.pay, Effect.objects.filter(name__startswith="row"), size=4)

            @step(atomic=atomic, was="settle")
            def pay(self, batch):
                journal.keys.append(self.step.idempotency_key)
                if len(batch) < 4:
                    raise ValueError("no luck")
                return {"settled": len(batch)}

        declared(Job, start=False)
        assert again(row).state == State.RETRYABLE
        declared(old, start=False)
        assert again(row).state == State.COMPLETED

        assert StepRecord.objects.get(name="settle").done == 10
        taken = [key.rpartition(":")[2] for key in journal.keys]
        assert taken == [str(notes[place]) for place in (0, 4, 8, 8)]

    def test_has_its_steps_own_retry_where_its_sums_are_none(self, declared, run_at, later, notes, atomic):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False, retry=Retry(max_attempts=1))
            def work(self, order):
                return self.each(self.settle, Effect.objects.all())

            @step(atomic=atomic, retry=Retry(max_attempts=3))
            def settle(self, batch):
                return {"rows": None}

        expected = State.RETRYABLE if atomic else State.DISCARDED  # What a plain step did is done.
        assert run_at(declared(Job), later).state == expected


def fail_once_in_a_batch_of(size, journal):
    """Note under which keys batches were tried; the first of them fails."""
    journal.tried = []

    def do(what):
        journal.tried.append(step_under_way.get().idempotency_key)
        if what == size and len(journal.tried) == 1:
            raise ValueError("no luck")

    return do


class TestTheStatements:
    @pytest.mark.parametrize(("atomic", "most"), [(True, 1), (False, 2)])
    def test_of_a_batch_are_few(self, declared, run_at, later, journal, notes, atomic, most):
        row = declared(settling(journal, atomic=atomic, size=1))

        with CaptureQueriesContext(connection) as queries:
            run_at(row, later)

        ways = "timeline_record_place", "INSERT INTO timeline_step AS step"  # PostgreSQL's, and SQLite's.
        written = [query for query in queries if any(way in query["sql"] for way in ways)]
        assert len(written) == most * 10 + 1


class TestAPlainBatch:
    def test_is_of_the_same_rows_again(self, declared, run_at, later, again, journal, notes):
        """Rows that the filter does not give any more, since the first try has changed them."""
        row = declared(settling(journal, atomic=False))
        journal.fails = [4]
        seen = []
        run_at(row, later)
        assert Effect.objects.filter(name="settled").count() == 4
        Effect.objects.filter(pk=notes[2]).delete()
        journal.do = seen.append

        again(row)

        assert seen == [3, 4, 2, "report"]
        assert journal.keys[0] == f"{row.pk}:settle:{notes[0]}"

    def test_has_the_same_key_again_though_its_first_row_is_gone(self, declared, run_at, later, again, journal, notes):
        row = declared(settling(journal, atomic=False))
        journal.do = fail_once_in_a_batch_of(4, journal)
        run_at(row, later)
        Effect.objects.filter(pk=notes[0]).delete()

        again(row)

        assert journal.tried[0] == journal.tried[1] == f"{row.pk}:settle:{notes[0]}"

    def test_that_an_atomic_step_finds_under_way_is_taken(self, declared, run_at, later, again, journal, notes):
        """After a deploy, also rows that the filter does not give any more."""
        row = declared(settling(journal, atomic=False))
        journal.fails = [4]
        run_at(row, later)
        assert Effect.objects.filter(name="settled").count() == 4
        declared(settling(journal, atomic=True), start=False)

        assert again(row).result == {"settled": 10, "half": 5.0}
        assert journal.done == [4, 4, 4, 2, "report"]

    def test_that_is_gone_is_nobodys(self, declared, run_at, later, again, journal, notes):
        """So failures are not counted anew behind it."""
        row = declared(settling(journal, atomic=False))
        journal.fails = [4]
        run_at(row, later)
        Effect.objects.all().delete()
        journal.fails = ["report"]
        StepRecord.objects.update(attempt=0)
        declared(settling(journal, atomic=False, rows=Effect.objects.none), start=False)

        again(row)

        assert StepRecord.objects.get(name="settle").attempt == 0

    def test_of_which_all_rows_are_gone_is_done(self, declared, run_at, later, again, journal, notes):
        row = declared(settling(journal, atomic=False))
        journal.fails = [4]
        run_at(row, later)
        Effect.objects.filter(pk__in=notes[:4]).delete()

        assert again(row).result == {"settled": 6, "half": 3.0}

    def test_may_ask_to_be_taken_later(self, declared, run_at, later, again, journal, notes):
        row = declared(settling(journal, atomic=False))
        journal.fails, journal.error = [2], lambda what: journal.fails.pop() and RetryAfter(timedelta(minutes=5))

        assert run_at(row, later).state == State.RETRYABLE
        assert again(row).state == State.COMPLETED

    def test_that_returns_no_sums_ends_the_task(self, declared, run_at, later, notes):
        ended = run_at(declared(self.returning("two", atomic=False)), later)

        assert ended.state == State.DISCARDED
        assert ended.error == (
            "timeline.exceptions.Discard: result of step settle: is 'two' for a batch. Return numbers by name, or None."
        )

    def test_of_an_atomic_step_is_undone_with_it(self, declared, run_at, later, notes):
        failed = run_at(declared(self.returning({"rows": True}, atomic=True)), later)

        assert failed.state == State.RETRYABLE
        assert not Effect.objects.filter(name="settled").exists()

    def returning(self, value, *, atomic):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                self.each(self.settle, Effect.objects.filter(name__startswith="row"))

            @step(atomic=atomic)
            def settle(self, batch):
                Effect.objects.filter(pk__in=[row.pk for row in batch]).update(name="settled")
                return value

        return Job


class TestRefused:
    @pytest.mark.parametrize(
        ("atomic", "rows", "said"),
        [
            (True, lambda: Effect.objects.using("other"), "is of the database other"),
            (False, Effect.objects.select_for_update, "locks its rows, and settle has no transaction"),
        ],
    )
    def test_are_rows_that_the_step_cannot_be_taken_for(self, declared, run_at, later, journal, atomic, rows, said):
        failed = run_at(declared(settling(journal, atomic=atomic, rows=rows)), later)

        assert failed.state == State.RETRYABLE
        assert said in failed.error
        assert not StepRecord.objects.exists()


class TestAnEarlierRevision:
    def test_has_done_its_batches_itself(self):
        """So an attempt of the same number at the next revision has not."""
        record = StepRecord(task_id=uuid4(), attempt=2, place={"after": 4}, done=4, total=9, result={}, seconds=1.0)

        assert Course.of(record, record.task_id).done_by == 2
        assert Course.of(record, uuid4()).done_by == 0


class TestOtherCode:
    def test_that_loops_over_another_model_rests(self, declared, run_at, later, again, journal, notes):
        row = declared(settling(journal, atomic=True))
        journal.fails = [2]
        run_at(row, later)
        declared(settling(journal, atomic=True, rows=Order.objects.all, drift="go on"), start=False)

        rests = again(row)

        assert (rests.state, rests.reason_code) == (State.RETRYABLE, "definition")
        assert StepRecord.objects.get().done == 8

    def test_that_calls_the_step_otherwise_rests(self, declared, run_at, later, again, journal, notes):
        row = declared(settling(journal, atomic=True))
        journal.fails = [2]
        run_at(row, later)

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                self.settle([])

            @step
            def settle(self, batch): ...

        declared(Job, start=False)

        assert again(row).reason == "the code has changed: step settle was done with other arguments"


@pytest.mark.django_db(transaction=True)
class TestAnAsyncLoop:
    def job(self, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            async def work(self, order):
                return await self.each(self.settle, Effect.objects.filter(name__startswith="row"), size=4)

            @step(atomic=False)
            async def settle(self, batch):
                journal.do(len(batch))
                return {"settled": len(batch)}

        return Job

    def test_ends_behind_the_batch_that_is_under_way_where_its_handler_fails(self, declared, run_at, later, notes):
        taken = []

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            async def work(self, order):
                await asyncio.gather(self.each(self.settle, Effect.objects.all(), size=1), self.fail())

            @step(atomic=False)
            async def settle(self, batch):
                taken.append(batch[0].pk)

            async def fail(self):
                while len(taken) < 2:
                    await asyncio.sleep(0)
                raise ValueError("no luck")

        assert run_at(declared(Job), later).state == State.RETRYABLE
        assert len(taken) < 5

    def test_goes_on_where_it_failed(self, declared, run_at, later, again, journal, notes):
        row = declared(self.job(journal))
        journal.fails = [2]

        assert run_at(row, later).state == State.RETRYABLE
        assert again(row).result == {"settled": 10}
        assert journal.done == [4, 4, 2, 2]


class TestCaught:
    def test_an_end_lets_no_further_batch_be_taken(self, declared, run_at, later, journal, notes):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                with suppress(Exception):
                    self.each(self.settle, Effect.objects.all(), size=4)
                self.report()

            @step(atomic=False)
            def settle(self, batch):
                journal.do(len(batch))
                ScheduledTask.objects.filter(pk=row.pk).update(attempt=2)

            @step(atomic=False)
            def report(self):
                journal.do("report")

        row = declared(Job)

        assert run_at(row, later) is None
        assert journal.done == [4]
