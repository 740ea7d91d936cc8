"""Record steps: once, and only while the attempt is its worker's."""

from contextlib import suppress
from datetime import timedelta

import pytest

from tests.engine import conftest as engine
from tests.testapp.models import Effect
from timeline import Retry, RetryAfter, Timeline, after, step, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind, StepRecord

again, declared, journal = engine.again, engine.declared, engine.journal  # Fixtures.


class TestOnce:
    def paying(self, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                return self.pay(order)

            @step(atomic=False, once=True)
            def pay(self, order):
                return journal.do("pay")

        return Job

    def test_is_recorded_before_and_after(self, declared, run_at, later, journal):
        seen = []
        journal.do = lambda what: seen.append(StepRecord.objects.get().kind)

        done = run_at(declared(self.paying(journal)), later)

        assert done.state == State.COMPLETED
        assert (seen, StepRecord.objects.get().kind) == ([StepKind.BEGUN], StepKind.DONE)

    def test_is_told_of_in_the_log(
        self, declared, run_at, later, again, journal, caplog, django_capture_on_commit_callbacks
    ):
        row = declared(self.paying(journal))
        journal.fails = ["pay"]
        run_at(row, later)

        with django_capture_on_commit_callbacks(execute=True):
            again(row)

        [said] = [record for record in caplog.records if record.name == "timeline.endings"]
        assert said.levelname == "WARNING"
        assert "rests after attempt 2, and looks again at" in said.getMessage()
        assert said.reason_code == "in_doubt"

    def test_rests_where_nobody_knows_whether_it_happened(self, declared, run_at, later, again, journal):
        row = declared(self.paying(journal))
        journal.fails = ["pay"]
        run_at(row, later)

        for _ in range(3):
            rests = again(row)

            assert (rests.state, rests.reason_code, rests.failures) == (State.RETRYABLE, "in_doubt", 0)
            assert rests.reason == "step pay was begun and may have happened; somebody has to decide"
            assert rests.scheduled_at - rests.started_at == timedelta(hours=1)
        assert journal.done == ["pay"]

    def test_is_called_again_where_it_says_that_nothing_happened(self, declared, run_at, later, again, journal):
        row = declared(self.paying(journal))
        journal.fails, journal.error = ["pay"], lambda what: journal.fails.pop() and RetryAfter(timedelta(minutes=5))

        assert run_at(row, later).state == State.RETRYABLE
        assert not StepRecord.objects.exists()
        assert again(row).state == State.COMPLETED
        assert journal.done == ["pay", "pay"]

    def test_rests_at_once_even_if_that_was_its_last_attempt(self, declared, run_at, later, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False, retry=Retry(max_attempts=1))
            def work(self, order):
                self.pay()

            @step(atomic=False, once=True)
            def pay(self):
                journal.do("pay")

        row = declared(Job)
        journal.fails = ["pay"]

        rests = run_at(row, later)

        assert (rests.state, rests.reason_code, rests.error) == (
            State.RETRYABLE,
            "in_doubt",
            "ValueError: pay is down",
        )

    def test_rests_though_its_handler_catches_the_error(self, declared, run_at, later, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                try:
                    self.pay()
                except ValueError:
                    return "never mind"

            @step(atomic=False, once=True)
            def pay(self):
                journal.do("pay")

        journal.fails = ["pay"]

        assert run_at(declared(Job), later).reason_code == "in_doubt"

    @pytest.mark.parametrize("drift", ["rest", "go on"])
    def test_rests_though_its_handler_does_not_come_by_any_more(self, declared, run_at, later, again, journal, drift):
        row = declared(self.paying(journal))
        journal.fails = ["pay"]
        run_at(row, later)

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False, drift=drift)
            def work(self, order):
                journal.do("other")

            @step(atomic=False)
            def pay(self): ...

        declared(Job, start=False)

        assert again(row).reason_code == "in_doubt"
        assert journal.done == ["pay"]


class TestTheFence:
    def job(self, act):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                with suppress(Exception):
                    self.first()
                Effect.objects.create(name="caught")
                self.second()

            @step
            def first(self):
                Effect.objects.create(name="first")
                act()

            @step
            def second(self):
                Effect.objects.create(name="second")

        return Job

    def test_keeps_out_what_was_cancelled_meanwhile(self, declared, run_at, later):
        """On one connection the cancel is part of the step's own transaction here; it is undone with it."""
        row = declared(self.job(lambda: ScheduledTask.objects.filter(pk=row.pk).update(attempt=2)))

        assert run_at(row, later) is None
        assert list(Effect.objects.values_list("name", flat=True)) == ["caught"]
        assert not StepRecord.objects.exists()

    def test_keeps_out_what_is_recorded_already(self, declared, run_at, later):
        """On one connection that record is part of the step's own transaction, too."""

        def record():
            StepRecord.objects.create(
                origin=row.pk, name="first", task_id=row.pk, attempt=1, kind="done", recorded_at=later, seconds=0,
                digest="", code="", result="theirs",
            )  # fmt: skip

        row = declared(self.job(record))

        assert run_at(row, later) is None
        assert list(Effect.objects.values_list("name", flat=True)) == ["caught"]
