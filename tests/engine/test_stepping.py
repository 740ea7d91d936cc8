"""Take steps: what is done is not done again, and what cannot be told rests."""

import asyncio
from contextlib import ExitStack
from datetime import timedelta
from threading import Thread

import pytest
from django.db import connection, transaction
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Effect
from timeline import Discard, Retry, RetryAfter, Timeline, after, step, task
from timeline.definition import StepContext
from timeline.exceptions import DefinitionError, Rest
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask, StepKind, StepRecord
from timeline.operations.cancelling import cancel
from timeline.operations.pruning import Pruned, prune
from timeline.operations.redriving import redrive
from timeline.testing import only_timelines

OPERATOR = Reason.operator("asked for", "ada")


class Journal:
    """What was done outside, and what is to fail there."""

    def __init__(self):
        self.done = []
        self.fails = []

    def do(self, what):
        self.done.append(what)
        if self.fails and what == self.fails[0]:
            raise self.error(what)
        return what

    def error(self, what):
        self.fails.pop(0)
        return ValueError(f"{what} is down")


@pytest.fixture
def journal():
    return Journal()


@pytest.fixture
def declared(order, now, start_at):
    """Have a timeline known, and give its first task's row; a class of the same name takes the place of the one before."""
    with ExitStack() as known:

        def declare(cls, start=True):
            known.close()
            known.enter_context(only_timelines(cls))
            if start:
                start_at("job", order, now)
            return ScheduledTask.objects.get(task_key="job.work") if start else None

        yield declare


@pytest.fixture
def again(run_at, later):
    """Run a row once more, when it is due again."""

    def run_again(row):
        row.refresh_from_db()
        return run_at(row, max(row.scheduled_at, later))

    return run_again


def invoicing(journal, **options):
    """Three steps: a number, which is a row, then two calls outside."""

    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False, **options)
        def work(self, order):
            number = self.number(order)
            url = self.upload(number)
            self.send(url)
            return {"url": url}

        @step
        def number(self, order):
            """Take the next number."""
            Effect.objects.create(name="number")
            journal.do("number")
            return Effect.objects.count()

        @step(atomic=False)
        def upload(self, number):
            journal.do("upload")
            return f"/invoices/{number}"

        @step(atomic=False)
        def send(self, url):
            journal.do("send")

    return Job


class TestWhatIsDone:
    def test_is_recorded_with_what_it_gave(self, declared, run_at, later, journal):
        row = declared(invoicing(journal))

        done = run_at(row, later)

        assert (done.state, done.result) == (State.COMPLETED, {"url": "/invoices/1"})
        assert journal.done == ["number", "upload", "send"]
        records = list(StepRecord.objects.order_by("pk").values_list("origin", "name", "task_id", "attempt", "result"))
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
        steps = {row["fields"]["name"] for row in archived if row["model"] == "timeline.steprecord"}
        assert steps == {"number", "upload", "send"}
        assert not StepRecord.objects.exists()

    def test_takes_one_statement_each(self, declared, run_at, later, journal):
        row = declared(invoicing(journal))

        with CaptureQueriesContext(connection) as queries:
            run_at(row, later)

        assert len([query for query in queries if "timeline_step" in query["sql"]]) == 3


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


def handler_of(call):  # noqa: C901 (all ways to declare one)
    """A timeline whose handler makes a call, beside the steps that it may take."""

    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1), atomic=False, retry=Retry(max_attempts=1))
        def work(self, order):
            return call(self)

        @task(atomic=True)
        def writes(self, order):
            return call(self)

        @task(atomic=False, bulk=2)
        def many(self, orders):
            return call(self)

        @task(atomic=False)
        async def side_by_side(self, order):
            return call(self)

        @step
        def number(self):
            Effect.objects.create(name="number")

        @step(atomic=False)
        def upload(self):
            return "there"

        @step(atomic=False)
        async def fetch(self):
            return "fetched"

        @step(atomic=False)
        def outer(self):
            return self.upload()

    return Job


def in_transaction(job):
    with transaction.atomic():
        job.upload()


def in_thread(job):
    caught = []

    def act():
        try:
            job.upload()
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            caught.append(error)

    thread = Thread(target=act)
    thread.start()
    thread.join()
    raise caught[0]


def twice(job):
    job.upload()
    job.upload()


class TestWhereAStepIsRefused:
    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (twice, "upload is called twice in one attempt. Tell the calls apart by a key: self.upload.keyed(…)."),
            (in_transaction, "upload is called in a transaction"),
            (in_thread, "upload is called in another thread"),
            (lambda job: job.outer(), "upload is called in another step"),
            (lambda job: job.fetch(), "fetch and the handler are not both declared with async def"),
            (lambda job: job.upload.keyed("\ud800")(), "key: "),
            (lambda job: job.upload.keyed("x" * 91)(), "Give text of at most 90 characters"),
        ],
    )
    def test_in_a_plain_handler(self, declared, run_at, later, call, said):
        done = run_at(declared(handler_of(call)), later)

        assert done.state == State.DISCARDED
        assert said in done.reason + done.error

    @pytest.mark.parametrize(
        ("kind", "said"),
        [
            ("writes", "upload is called in an atomic handler"),
            ("many", "upload is called for many entities at once"),
            ("side_by_side", "upload and the handler are not both declared with async def"),
        ],
    )
    def test_in_other_handlers(self, declared, run_at, now, order, schedule_at, kind, said):
        declared(handler_of(lambda job: job.upload()))

        done = run_at(schedule_at(f"job.{kind}", order, now, now).task, now)

        assert done.state == State.RETRYABLE
        assert said in done.reason + done.error
        assert not StepRecord.objects.exists()


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


class TestTheFence:
    def job(self, act):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                try:
                    self.first()
                except Exception:  # noqa: BLE001 (as hosts do)
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

    def test_takes_over_what_somebody_recorded_meanwhile(self, declared, run_at, later):
        def record():
            StepRecord.objects.create(
                origin=row.pk, name="first", task_id=row.pk, attempt=1, kind="done", recorded_at=later, seconds=0,
                digest="", code="", result="theirs",
            )  # fmt: skip

        row = declared(self.job(record))

        assert run_at(row, later) is None or not Effect.objects.filter(name="first").exists()


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


class TestAsync:
    def job(self, journal):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            async def work(self, order):
                one, two = await asyncio.gather(self.fetch.keyed("a")("a"), self.fetch.keyed("b")("b"))
                return [one, two, await self.send()]

            @step(atomic=False)
            async def fetch(self, what):
                await asyncio.sleep(0)
                journal.do(what)
                return self.step.name

            @step(atomic=False)
            async def send(self):
                return journal.do("send")

        return Job

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("fails", ["a", "b", "send"])
    def test_is_not_done_again(self, declared, run_at, later, again, journal, fails):
        row = declared(self.job(journal))
        journal.fails = [fails]

        assert run_at(row, later).state == State.RETRYABLE
        done = again(row)

        assert (done.state, done.result) == (State.COMPLETED, ["fetch#a", "fetch#b", "send"])
        assert journal.done.count(fails) == 2
        assert StepRecord.objects.count() == 3

    def failing(self, journal, how):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False, retry=Retry(max_attempts=1))
            async def work(self, order):
                await how(self)

            @step(atomic=False, once=True)
            async def pay(self):
                journal.do("pay")

            @step(atomic=False)
            async def tell(self):
                await asyncio.sleep(0.05)
                journal.do("tell")

            @step(atomic=False, retry=Retry(max_attempts=4))
            async def fetch(self):
                raise journal.error("fetch")

        return Job

    @pytest.mark.django_db(transaction=True)
    def test_rests_out_of_a_group_and_lets_its_neighbours_end(self, declared, run_at, later, again, journal):
        async def grouped(job):
            async with asyncio.TaskGroup() as group:
                group.create_task(job.pay())

        row = declared(self.failing(journal, grouped))
        journal.fails = ["pay"]

        assert run_at(row, later).reason_code == "in_doubt"
        assert again(row).reason_code == "in_doubt"
        assert journal.done == ["pay"]

    @pytest.mark.django_db(transaction=True)
    def test_fails_by_itself_out_of_a_group(self, declared, run_at, later, journal):
        async def grouped(job):
            async with asyncio.TaskGroup() as group:
                group.create_task(job.fetch())

        journal.fails = ["fetch"]
        failed = run_at(declared(self.failing(journal, grouped)), later)

        assert (failed.state, failed.reason) == (State.RETRYABLE, "fetch is down")

    @pytest.mark.django_db(transaction=True)
    def test_is_waited_for_where_another_one_failed(self, declared, run_at, later, journal):
        async def gathered(job):
            await asyncio.gather(job.fetch(), job.tell())

        journal.fails = ["fetch"]
        failed = run_at(declared(self.failing(journal, gathered)), later)

        assert failed.state == State.RETRYABLE
        assert journal.done == ["tell"]
        assert list(StepRecord.objects.values_list("name", flat=True)) == ["tell"]

    @pytest.mark.django_db(transaction=True)
    def test_begins_none_once_the_handler_has_ended(self, declared, run_at, later, journal):
        async def early(job):
            job.later = asyncio.get_running_loop().create_task(self.much_later(job))

        done = run_at(declared(self.failing(journal, early)), later)

        assert done.state == State.COMPLETED
        assert journal.done == []

    async def much_later(self, job):
        await asyncio.sleep(0.05)
        await job.tell()


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
                try:
                    self.pay()
                except ValueError:
                    raise
                except BaseException:  # noqa: BLE001 (as hosts do)
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
