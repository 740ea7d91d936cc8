"""Take steps: what is done is not done again."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from tests.engine import conftest as engine
from tests.engine.invoicing import invoicing
from tests.testapp.models import Effect
from timeline import Discard, Retry, Timeline, after, step, task
from timeline.definition import StepContext
from timeline.exceptions import DefinitionError, Rest
from timeline.features.maintenance.prune import Pruned, prune
from timeline.lifecycle import Reason, State
from timeline.models import StepKind, StepRecord
from timeline.operations.cancel import cancel
from timeline.operations.redrive import redrive

again, declared, journal = engine.again, engine.declared, engine.journal  # Fixtures.

OPERATOR = Reason.operator("asked for", "ada")


class TestWhatIsDone:
    def test_is_recorded_with_what_it_gave(self, declared, run_at, later, journal):
        row = declared(invoicing(journal))

        done = run_at(row, later)

        assert (done.state, done.result) == (State.COMPLETED, {"url": "/invoices/1"})
        assert journal.done == ["number", "upload", "send"]
        records = [
            (record.origin, record.name, record.by_task, record.attempt, record.result)
            for record in StepRecord.objects.order_by("pk")
        ]
        assert records == [
            (row.pk, "number", row.pk, 1, 1),
            (row.pk, "upload", row.pk, 1, "/invoices/1"),
            (row.pk, "send", row.pk, 1, None),
        ]
        assert all(record.kind == StepKind.DONE for record in StepRecord.objects.all())
        assert not StepRecord.objects.exclude(recorded_at__range=(later, later + timedelta(minutes=1))).exists()

    @pytest.mark.parametrize("fails", ["upload", "send"])
    def test_is_not_done_again(self, declared, run_at, later, again, journal, fails):
        row = declared(invoicing(journal))
        journal.fails = [fails]

        assert run_at(row, later).state == State.RETRYABLE
        assert again(row).state == State.COMPLETED

        assert journal.done.count(fails) == 2
        assert [journal.done.count(other) for other in {"number", "upload", "send"} - {fails}] == [1, 1]
        assert Effect.objects.count() == 1

    def test_is_undone_with_an_atomic_step_that_fails(self, declared, run_at, later, journal):
        journal.fails = ["number"]

        run_at(declared(invoicing(journal)), later)

        assert not Effect.objects.exists()
        assert not StepRecord.objects.exists()

    def test_comes_back_as_json_the_first_time_too(self, declared, run_at, later):
        seen = []

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                seen.append(self.of_numbers())

            @step(atomic=False)
            def of_numbers(self):
                return {"sizes": [1, 2], "note": "größer"}

        run_at(declared(Job), later)

        assert seen == [{"sizes": [1, 2], "note": "größer"}]

    @pytest.mark.parametrize("result", [b"pdf", (1, 2), {1: "x"}, timedelta(1), float("nan"), "x" * 70_000])
    def test_is_json_or_is_not_tried_again(self, declared, run_at, later, result):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                self.give()

            @step(atomic=False)
            def give(self):
                return result

        done = run_at(declared(Job), later)

        assert done.state == State.DISCARDED
        assert "result of step give" in done.reason

    def test_goes_on_after_a_redrive(self, declared, run_at, later, journal, order):
        row = declared(invoicing(journal, retry=Retry(max_attempts=1)))
        journal.fails = ["upload"]
        assert run_at(row, later).state == State.DISCARDED

        anew = redrive(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")[0]
        assert run_at(anew, later).state == State.COMPLETED

        assert journal.done == ["number", "upload", "upload", "send"]

    def test_is_done_anew_by_a_redrive_of_what_completed(self, declared, run_at, later, journal):
        row = declared(invoicing(journal))
        run_at(row, later)

        anew = redrive(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")[0]
        assert run_at(anew, later).state == State.COMPLETED

        assert journal.done == ["number", "upload", "send"] * 2

    def test_is_pruned_with_its_task(self, declared, run_at, later, journal):
        run_at(declared(invoicing(journal)), later)
        archived = []

        pruned = prune(ended_before=later + timedelta(days=9), archive=archived.extend, using="default")

        assert pruned == Pruned(runs=1, tasks=1, log_entries=3)
        steps = [row["fields"] for row in archived if row["model"] == "timeline.steprecord"]
        assert {step["name"] for step in steps} == {"number", "upload", "send"}
        assert {step["task_id"] for step in steps} == {step["origin"] for step in steps}
        assert not StepRecord.objects.exists()

    def test_takes_one_statement_each(self, declared, run_at, later, journal):
        row = declared(invoicing(journal))

        with CaptureQueriesContext(connection) as queries:
            run_at(row, later)

        names = "timeline_step", "timeline_record_step"  # The table; or the function of PostgreSQL's that writes there.
        assert len([query for query in queries if any(name in query["sql"] for name in names)]) == 3


class TestKeys:
    def test_tell_calls_apart(self, declared, run_at, later, again, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                return [self.upload.keyed(language)(language) for language in ("de", "en")]

            @step(atomic=False)
            def upload(self, language):
                return [journal.do(language), self.step.name, self.step.idempotency_key]

        row = declared(Job)
        journal.fails = ["en"]
        run_at(row, later)

        done = again(row)

        assert journal.done == ["de", "en", "en"]
        assert done.result == [["de", "upload#de", f"{row.pk}:upload#de"], ["en", "upload#en", f"{row.pk}:upload#en"]]


class TestBudgets:
    def test_begin_anew_once_a_step_is_done(self, declared, run_at, later, again, journal):
        row = declared(invoicing(journal, retry=Retry(max_attempts=2)))
        journal.fails = ["number", "upload", "send"]

        states = [run_at(row, later).state, *(again(row).state for _ in range(3))]

        assert states == [State.RETRYABLE] * 3 + [State.COMPLETED]

    def test_end_where_a_step_does_not_get_done(self, declared, run_at, later, again, journal):
        row = declared(invoicing(journal, retry=Retry(max_attempts=2)))
        journal.fails = ["upload", "upload"]

        assert run_at(row, later).state == State.RETRYABLE
        ended = again(row)

        assert (ended.state, ended.failures) == (State.DISCARDED, 2)

    def test_are_a_steps_own_where_it_has_one(self, declared, run_at, later, again, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False, retry=Retry(max_attempts=1))
            def work(self, order):
                try:
                    self.upload()
                except ValueError as error:
                    raise RuntimeError("no upload") from error

            @step(atomic=False, retry=Retry(max_attempts=3))
            def upload(self):
                journal.do("upload")

        row = declared(Job)
        journal.fails = ["upload"] * 3

        assert [run_at(row, later).state, again(row).state, again(row).state] == [
            State.RETRYABLE,
            State.RETRYABLE,
            State.DISCARDED,
        ]

    def test_of_the_handler_are_not_a_steps(self, declared, run_at, later):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False, retry=Retry(max_attempts=1))
            def work(self, order):
                self.upload()
                raise ValueError("mine")

            @step(atomic=False, retry=Retry(max_attempts=3))
            def upload(self):
                return None

        assert run_at(declared(Job), later).state == State.DISCARDED


class TestHalfDone:
    def test_goes_on_whatever_its_guard_says(self, declared, run_at, later, again, journal, order):
        row = declared(invoicing(journal, unless=Q(paid=True)))
        journal.fails = ["send"]
        run_at(row, later)
        type(order).objects.update(paid=True)

        assert again(row).state == State.COMPLETED

    def test_goes_on_when_it_is_late(self, declared, run_at, later, again, journal):
        row = declared(invoicing(journal, expires=timedelta(seconds=1)))
        journal.fails = ["send"]
        run_at(row, later)

        assert again(row).state == State.COMPLETED

    def test_is_cancelled_by_a_person_all_the_same(self, declared, run_at, later, journal):
        row = declared(invoicing(journal))
        journal.fails = ["send"]
        run_at(row, later)

        cancel(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")

        row.refresh_from_db()
        assert row.state == State.CANCELLED
        assert StepRecord.objects.count() == 2


class TestWithoutARun:
    """In a unit test, a step is a plain method."""

    def test_calls_the_method(self, journal):
        assert invoicing(journal)().upload(7) == "/invoices/7"

    def test_takes_what_it_reads(self):
        class Job(Timeline):
            @task(atomic=False)
            def work(self): ...

            @step(atomic=False)
            def upload(self):
                return self.step.idempotency_key

        assert Job(step=StepContext(name="upload", idempotency_key="k")).upload() == "k"


class TestRest:
    def test_is_not_caught_by_a_handler_that_catches_errors(self):
        assert not issubclass(Rest, Exception)

    def test_lets_no_further_step_be_taken(self, declared, run_at, later, again, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                with suppress(Rest):
                    self.pay()
                self.tell()

            @step(atomic=False, once=True)
            def pay(self):
                journal.do("pay")

            @step(atomic=False)
            def tell(self):
                journal.do("tell")

        row = declared(Job)
        journal.fails = ["pay"]
        run_at(row, later)

        assert again(row).reason_code == "in_doubt"
        assert journal.done == ["pay"]


def test_a_step_named_step_is_refused():
    with pytest.raises(DefinitionError, match="is the name of what a handler reads from self"):

        class Job(Timeline):
            @task(atomic=False)
            def work(self): ...

            @step
            def step(self): ...


def test_discard_in_a_step_ends_the_task(declared, run_at, later, journal):
    row = declared(invoicing(journal))
    journal.fails, journal.error = ["upload"], lambda what: Discard("no such bucket")

    assert run_at(row, later).state == State.DISCARDED
