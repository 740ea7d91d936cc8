"""Handlers that tell how far they are: a record of its own, seldom written, that counts for nothing else."""

from contextlib import suppress

import pytest
from django.db import InterfaceError, OperationalError, transaction
from django.utils.translation import gettext_lazy as _

from tests.engine import conftest as engine
from tests.testapp.models import Effect
from timeline import Timeline, after, step, task
from timeline.exceptions import InvalidInput, LeaseLost
from timeline.features.steps import progress
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind, StepRecord

again, declared = engine.again, engine.declared  # Fixtures.


class Telling(Timeline, abstract=True):
    """Each kind of handler makes a call."""

    entity = "testapp.Order"

    @task(after(days=1), atomic=False)
    def work(self, order):
        return self.call()

    @task(atomic=True)
    def writes(self, order):
        return self.call()

    @task(atomic=False, bulk=2)
    def many(self, orders):
        return self.call()

    @task(atomic=False)
    async def side_by_side(self, order):
        await self.acall()

    @step
    def write(self):
        self.progress(1)

    @step(atomic=False)
    def call_outside(self):
        Effect.objects.create(name="called")


def telling(made):
    class Job(Telling):
        def call(self):
            return made(self)

        async def acall(self):
            await made(self)

    return Job


def note():
    return StepRecord.objects.get(kind=StepKind.NOTE)


class TestProgress:
    def test_is_written_over(self, declared, run_at, later, monkeypatch):
        monkeypatch.setattr(progress, "SELDOM", 0.0)
        seen = []

        def act(job):
            for number in (1, 2):
                job.progress(number, 5, f"at {number}")
                seen.append((note().done, note().total, note().result))

        done = run_at(declared(telling(act)), later)

        assert done.state == State.COMPLETED
        assert seen == [(1, 5, "at 1"), (2, 5, "at 2")]

    def test_is_written_seldom_and_at_the_end(self, declared, run_at, later):
        def act(job):
            for number in range(1, 101):
                job.progress(number, 100)
                if number < 100:
                    assert note().done == 1

        assert run_at(declared(telling(act)), later).state == State.COMPLETED
        assert (note().done, note().result) == (100, None)

    def test_is_no_step(self, declared, run_at, later, again):
        """Its guard is asked, and nothing rests, although it has told how far it was."""
        tries = []

        def act(job):
            job.progress(1)
            tries.append(job)
            if len(tries) == 1:
                raise ValueError("no luck")

        row = declared(telling(act))
        failed = run_at(row, later)

        assert (failed.state, failed.failures) == (State.RETRYABLE, 1)
        assert again(row).state == State.COMPLETED

    def test_ends_the_attempt_that_is_not_its_workers(self, declared, run_at, later):
        def act(job):
            ScheduledTask.objects.filter(pk=job.task.pk).update(attempt=2)
            job.progress(1)
            Effect.objects.create(name="went on")

        assert run_at(declared(telling(act)), later) is None
        assert not Effect.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_of_an_async_handler(self, declared, run_at, now, order, schedule_at):
        declared(telling(lambda job: job.aprogress(3, 9)))

        done = run_at(schedule_at("job.side_by_side", order, now, now).task, now)

        assert (done.state, note().done) == (State.COMPLETED, 3)

    def test_is_only_checked_where_nothing_runs(self):
        telling(None)().progress(1, 2)


def in_transaction(job):
    with transaction.atomic():
        job.progress(1)


class TestRefused:
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ((-1,), "done: is -1. Give a whole number, 0 or more."),
            ((True,), "done: is True."),
            ((1.5,), "done: is 1.5."),
            ((1, "2"), "total: is '2'."),
            ((1, 2**63), "total: is 9223372036854775808."),
            ((1, 2, "x" * 201), "note: "),
            ((1, 2, "\x00"), "note: "),
        ],
    )
    def test_is_what_is_no_progress(self, given, said):
        with pytest.raises(InvalidInput) as refused:
            telling(None)().progress(*given)

        assert str(refused.value).startswith(said)

    @pytest.mark.parametrize(
        ("kind", "call", "said"),
        [
            ("writes", lambda job: job.progress(1), "Declare it with atomic=False."),
            ("many", lambda job: job.progress(1), "Call it in a handler without bulk."),
            ("side_by_side", lambda job: job.progress(1), "In async def: await self.aprogress(…)."),
            ("work", in_transaction, "Call it outside of atomic() and of atomic steps."),
            ("work", lambda job: job.write(), "Call it outside of atomic() and of atomic steps."),
        ],
    )
    def test_is_where_nobody_would_see_it(self, declared, run_at, now, order, schedule_at, kind, call, said):
        declared(telling(call))

        done = run_at(schedule_at(f"job.{kind}", order, now, now).task, now)

        assert done.state == State.RETRYABLE
        assert said in done.error
        assert not StepRecord.objects.exists()


class TestWhatCannotBeWritten:
    @pytest.mark.parametrize("error", [OperationalError("no luck"), InterfaceError("gone")])
    def test_fails_no_handler(self, declared, run_at, later, monkeypatch, error):
        def fail(note, *, using):
            raise error from ValueError("what the driver said")

        monkeypatch.setattr(progress, "record_place", fail)

        assert run_at(declared(telling(lambda job: job.progress(1))), later).state == State.COMPLETED

    def test_a_caught_loss_lets_no_step_be_taken(self, declared, run_at, later):
        def act(job):
            ScheduledTask.objects.filter(pk=job.task.pk).update(attempt=2)
            with suppress(LeaseLost):
                job.progress(1)
            job.call_outside()

        assert run_at(declared(telling(act)), later) is None
        assert not Effect.objects.exists()

    def test_a_lazy_note_is_text(self, declared, run_at, later):
        assert run_at(declared(telling(lambda job: job.progress(1, 2, _("done")))), later).state == State.COMPLETED
        assert note().result == "done"
