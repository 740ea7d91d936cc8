"""Code that changes while tasks are half done: what fits goes on, what does not rests."""

import pytest

from tests.engine import conftest as engine
from tests.engine.invoicing import invoicing
from timeline import Timeline, after, step, task
from timeline.lifecycle import State
from timeline.models import StepRecord

again, declared, journal = engine.again, engine.declared, engine.journal  # Fixtures.


class TestRenamed:
    def test_counts_under_the_name_it_had(self, declared, run_at, later, again, journal):
        row = declared(invoicing(journal))
        journal.fails = ["send"]
        run_at(row, later)

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                self.take_number(order)
                self.publish(1)

            @step(was="number")
            def take_number(self, order):
                journal.do("take_number")

            @step(atomic=False, was="upload")
            def publish(self, number):
                journal.do("publish")

        declared(Job, start=False)

        assert again(row).state == State.COMPLETED
        assert journal.done == ["number", "upload", "send"]


class TestOtherCode:
    def half_done(self, declared, run_at, later, journal, **options):
        row = declared(invoicing(journal, **options))
        journal.fails = ["send"]
        run_at(row, later)
        return row

    def changed(self, journal, handler, **options):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False, **options)
            def work(self, order):
                return handler(self, order)

            @step
            def number(self, order):
                journal.do("number")

            @step(atomic=False)
            def upload(self, number):
                journal.do("upload")

            @step(atomic=False)
            def send(self, url):
                journal.do("send")

            @step(atomic=False)
            def tell(self):
                journal.do("tell")

        return Job

    @pytest.mark.parametrize(
        ("handler", "said"),
        [
            (
                lambda job, order: [job.upload(1), job.tell(), job.number(order)],
                "the code has changed: it comes to step tell without number, which is done",
            ),
            (
                lambda job, order: [job.number(order), job.upload(7), job.send("x")],
                "the code has changed: step upload was done with other arguments",
            ),
        ],
    )
    def test_that_does_not_fit_rests(self, declared, run_at, later, again, journal, handler, said):
        row = self.half_done(declared, run_at, later, journal)
        declared(self.changed(journal, handler), start=False)

        rests = again(row)

        assert (rests.state, rests.reason_code, rests.reason) == (State.RETRYABLE, "definition", said)
        assert rests.failures == 1
        assert journal.done == ["number", "upload", "send"]

    @pytest.mark.parametrize(
        "handler",
        [
            lambda job, order: [job.number(order), job.upload(1), job.send("/invoices/1"), job.tell()],
            lambda job, order: [job.upload(1), job.number(order), job.tell()],
        ],
        ids=["added at the end", "reordered, and removed at the end"],
    )
    def test_that_fits_goes_on(self, declared, run_at, later, again, journal, handler):
        row = self.half_done(declared, run_at, later, journal)
        declared(self.changed(journal, handler), start=False)

        assert again(row).state == State.COMPLETED
        assert journal.done.count("number") == journal.done.count("upload") == 1
        assert journal.done.count("tell") == 1

    def test_goes_on_where_that_is_declared(self, declared, run_at, later, again, journal):
        row = self.half_done(declared, run_at, later, journal)
        declared(self.changed(journal, lambda job, order: job.tell(), drift="go on"), start=False)

        assert again(row).state == State.COMPLETED
        assert journal.done[-1] == "tell"

    def test_without_any_step_rests(self, declared, run_at, later, again, journal):
        row = self.half_done(declared, run_at, later, journal)

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                journal.do("all of it")

        declared(Job, start=False)

        rests = again(row)

        assert (rests.state, rests.reason_code) == (State.RETRYABLE, "definition")
        assert "all of it" not in journal.done

    @pytest.mark.parametrize(("code", "state"), [("", State.COMPLETED), ("00000", State.RETRYABLE)])
    def test_is_told_by_the_code_of_records(self, declared, run_at, later, again, journal, code, state):
        """Of the same code no arguments are compared."""
        row = self.half_done(declared, run_at, later, journal)
        StepRecord.objects.update(code=code or invoicing(journal).definition.kept_code, digest="other")

        assert again(row).state == state

    def test_is_noticed_in_each_process_alike(self, journal):
        assert invoicing(journal).definition.code == invoicing(journal).definition.code
        other = self.changed(journal, lambda job, order: 1)
        assert other.definition.code != invoicing(journal).definition.code

    @pytest.mark.parametrize("atomic", [False, True])
    def test_that_takes_other_steps_instead_rests(self, declared, run_at, later, again, journal, atomic):
        row = self.half_done(declared, run_at, later, journal)

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=atomic)
            def work(self, order):
                journal.do("all of it")

            @task(atomic=False)
            def other(self, order): ...

            @step
            def quite_another(self): ...

        declared(Job, start=False)

        rests = again(row)

        assert (rests.state, rests.reason_code) == (State.RETRYABLE, "definition")
        assert "all of it" not in journal.done

    def test_in_shadow_rests(self, declared, run_at, later, again, journal):
        row = self.half_done(declared, run_at, later, journal)
        job = invoicing(journal)

        class Job(job):
            shadow = True

        declared(Job, start=False)

        rests = again(row)

        assert (rests.state, rests.reason) == (
            State.RETRYABLE,
            "its timeline is in shadow, and some of its steps are done",
        )
        assert journal.done == ["number", "upload", "send"]

    def test_keeps_the_key_of_a_step_that_is_renamed(self, declared, run_at, later):
        keys = []

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                self.publish.keyed("de")()

            @step(atomic=False, was="upload")
            def publish(self):
                keys.append(self.step.idempotency_key)

        row = declared(Job)
        run_at(row, later)

        assert keys == [f"{row.pk}:upload#de"]
