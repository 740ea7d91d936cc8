"""Wait for an event in a handler: the task rests, and the event or the deadline wakes it."""

import threading
from datetime import timedelta

import pytest
from django.db import transaction

from tests.engine import conftest as engine
from tests.testapp.models import Effect, Order
from timeline import Retry, RetryAfter, Timeline, after, step, task
from timeline.engine.attempts import begin_attempts
from timeline.engine.execute import call
from timeline.engine.finalize import record_together
from timeline.engine.precheck import look
from timeline.exceptions import InvalidInput
from timeline.lifecycle import Reason, State
from timeline.models import LogEntry, ScheduledTask, StepKind, StepRecord
from timeline.operations.move import run_now
from timeline.signals import attempts_failed

declared = engine.declared  # Fixtures.

TEN_MINUTES = timedelta(minutes=10)


def asking(*, ask=None, wait=lambda job: job.wait_for("otp.given", within=TEN_MINUTES), got=None, **options):
    """A handler that asks, perhaps in a step, and waits for the answer."""

    class Job(Timeline):
        entity = "testapp.Order"
        exits = {"order.closed": "closed"}
        starts_on = "otp.given"

        @task(after(days=1), atomic=False, **options)
        def work(self, order):
            if ask:
                self.ask()
            event = wait(self)
            if got is not None:
                got.append(event)
            return event.payload if event else "nothing"

        @step(atomic=False)
        def ask(self):
            ask()

    return Job


def state_of(row):
    row.refresh_from_db()
    return row.state, row.reason_code, row.scheduled_at


class TestAHandlerThatWaits:
    def test_rests_until_its_deadline(self, declared, run_at, later):
        row = declared(asking())

        done = run_at(row, later)

        assert state_of(row)[:2] == (State.RETRYABLE, "waiting")
        assert later + TEN_MINUTES <= done.scheduled_at < later + TEN_MINUTES + timedelta(minutes=1)
        assert (done.awaits, done.awaits_key, done.awaits_label, done.awaits_id) == (
            "otp.given",
            "",
            "testapp.order",
            row.entity_id,
        )
        assert (done.failures, done.lost, done.error) == (0, 0, "")
        assert "otp.given" in done.reason

    def test_is_waked_by_the_event_and_gets_it(self, declared, run_at, later, order, emit_at):
        got = []
        row = declared(asking(got=got))
        run_at(row, later)

        event = emit_at("otp.given", order, later + timedelta(minutes=1), payload={"code": "1"}).event

        assert state_of(row) == (State.AVAILABLE, "event", later + timedelta(minutes=1))
        done = run_at(row, later + timedelta(minutes=1))
        assert (done.state, done.result) == (State.COMPLETED, {"code": "1"})
        assert [known.pk for known in got] == [event.pk]
        assert done.failures == 0

    def test_goes_on_with_nothing_when_the_time_has_run_out(self, declared, run_at, later):
        row = declared(asking())
        until = run_at(row, later).scheduled_at

        done = run_at(row, until)

        assert (done.state, done.result) == (State.COMPLETED, "nothing")

    def test_gets_what_came_before_the_deadline_also_after_it(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        until = run_at(row, later).scheduled_at
        emit_at("otp.given", order, until - timedelta(seconds=1), payload={"n": 1})

        assert run_at(row, until + timedelta(hours=1)).result == {"n": 1}

    def test_gets_nothing_that_came_at_the_deadline_or_later(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        until = run_at(row, later).scheduled_at
        emit_at("otp.given", order, until, payload={"n": 1})

        assert run_at(row, until).result == "nothing"

    def test_gets_what_was_backdated_by_when_it_was_recorded(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        until = run_at(row, later).scheduled_at
        emit_at("otp.given", order, until + timedelta(minutes=1), occurred_at=later)

        assert run_at(row, until + timedelta(minutes=1)).result == "nothing"

    def test_gets_what_came_before_it_waited(self, declared, run_at, later, order, emit_at, now):
        """No answer is lost for having been quick."""
        row = declared(asking())
        emit_at("otp.given", order, later - timedelta(seconds=1), payload={"n": 1})

        assert run_at(row, later).result == {"n": 1}

    def test_does_not_get_the_event_that_started_its_run(self, declared, run_at, later, order, emit_at, now):
        declared(asking(), start=False)
        emit_at("otp.given", order, now)
        row = ScheduledTask.objects.get()

        assert run_at(row, later).state == State.RETRYABLE

    def test_gets_the_first_of_several(self, declared, run_at, later, order, emit_at):
        row = declared(asking(wait=lambda job: job.wait_for("otp.given", "otp.refused", within=TEN_MINUTES)))
        run_at(row, later)
        emit_at("otp.refused", order, later + timedelta(minutes=1), payload={"n": 1})
        emit_at("otp.given", order, later + timedelta(minutes=2), payload={"n": 2})

        assert run_at(row, later + timedelta(minutes=3)).result == {"n": 1}

    def test_keeps_its_answer(self, declared, run_at, later, order, emit_at):
        """What it got stands in its record: a later attempt gets the same."""
        fails = [True]

        def wait(job):
            event = job.wait_for("otp.given", within=TEN_MINUTES)
            if fails:
                raise RetryAfter(timedelta(minutes=1) if fails.pop() else None)
            return event

        row = declared(asking(wait=wait))
        until = run_at(row, later).scheduled_at
        assert run_at(row, until).state == State.RETRYABLE
        emit_at("otp.given", order, until - timedelta(seconds=5))

        row.refresh_from_db()
        assert row.awaits == ""
        assert run_at(row, until + timedelta(minutes=2)).result == "nothing"

    def test_is_no_attempt_of_its_budget(self, declared, run_at, later, order, emit_at):
        seen = []

        def wait(job):
            for place in "abcde":
                seen.append(job.wait_for("otp.given", key=place, within=TEN_MINUTES))
            raise ValueError

        row = declared(asking(wait=wait))
        moment = later
        for place in "abcde":
            assert run_at(row, moment).reason_code == "waiting"
            moment += timedelta(minutes=1)
            emit_at("otp.given", order, moment, key=place)

        done = run_at(row, moment)

        assert (done.attempt, done.failures, done.state) == (6, 1, State.RETRYABLE)

    def test_may_wait_in_a_task_tried_once(self, declared, run_at, later, order, emit_at):
        row = declared(asking(retry=Retry(max_attempts=1)))
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1))

        assert run_at(row, later + timedelta(minutes=1)).state == State.COMPLETED

    def test_has_not_failed(self, declared, run_at, later, caplog, django_capture_on_commit_callbacks):
        told = []

        def listen(endings, **given):
            told.extend(endings)

        attempts_failed.connect(listen)
        row = declared(asking())
        with django_capture_on_commit_callbacks(execute=True):
            run_at(row, later)
        attempts_failed.disconnect(listen)

        assert told == []
        assert not [record for record in caplog.records if record.name == "timeline.endings"]

    def test_has_its_wait_in_the_log(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1))

        log = (
            LogEntry.objects.filter(task_id=row.pk).order_by("seq").values_list("from_state", "to_state", "reason_code")
        )
        assert list(log)[-2:] == [("active", "retryable", "waiting"), ("retryable", "available", "event")]


class TestNobodyElsesEvent:
    def test_of_another_entity_wakes_it(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        run_at(row, later)

        emit_at("otp.given", Order.objects.create(), later + timedelta(minutes=1))

        assert state_of(row)[0] == State.RETRYABLE

    def test_of_another_name_wakes_it(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        run_at(row, later)

        emit_at("otp.given.late", order, later + timedelta(minutes=1))
        emit_at("given", order, later + timedelta(minutes=1))

        assert state_of(row)[0] == State.RETRYABLE

    def test_of_another_key_wakes_it(self, declared, run_at, later, order, emit_at):
        row = declared(asking(wait=lambda job: job.wait_for("otp.given", key="b", within=TEN_MINUTES)))
        run_at(row, later)

        emit_at("otp.given", order, later + timedelta(minutes=1), key="a")
        emit_at("otp.given", order, later + timedelta(minutes=1))
        assert state_of(row)[0] == State.RETRYABLE
        emit_at("otp.given", order, later + timedelta(minutes=2), key="b")
        assert state_of(row)[0] == State.AVAILABLE

    def test_cuts_a_backoff_short(self, declared, run_at, later, order, emit_at):
        """What it awaited before is not awaited any more."""

        def wait(job):
            job.wait_for("otp.given", within=TEN_MINUTES)
            raise RetryAfter(timedelta(hours=1))

        row = declared(asking(wait=wait))
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1))
        assert run_at(row, later + timedelta(minutes=1)).state == State.RETRYABLE

        emit_at("otp.given", order, later + timedelta(minutes=2))

        assert state_of(row)[0] == State.RETRYABLE


class TestTwoWaits:
    def test_are_not_served_by_one_event(self, declared, run_at, later, order, emit_at):
        def wait(job):
            job.wait_for("otp.given", within=TEN_MINUTES)
            return job.wait_for("otp.given", within=TEN_MINUTES, name="again")

        row = declared(asking(wait=wait))
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1), payload={"n": 1})
        assert run_at(row, later + timedelta(minutes=1)).reason_code == "waiting"

        emit_at("otp.given", order, later + timedelta(minutes=2), payload={"n": 2})

        assert run_at(row, later + timedelta(minutes=2)).result == {"n": 2}

    def test_alike_need_names(self, declared, run_at, later):
        def wait(job):
            job.wait_for("otp.given", within=timedelta(seconds=0.001))
            job.wait_for("otp.given", within=TEN_MINUTES)

        row = declared(asking(wait=wait))
        until = run_at(row, later).scheduled_at

        done = run_at(row, until)

        assert done.error.startswith("timeline.exceptions.InvalidInput")
        assert "name=" in done.error


class TestWithSteps:
    def test_what_is_done_is_passed_over(self, declared, run_at, later, order, emit_at):
        asked = []
        row = declared(asking(ask=lambda: asked.append(1)))
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1))

        assert run_at(row, later + timedelta(minutes=1)).state == State.COMPLETED
        assert asked == [1]

    def test_an_answer_to_a_question_asked_in_a_lost_attempt_counts(self, declared, run_at, later, order, emit_at):
        row = declared(asking(ask=lambda: emit_at("otp.given", order, later, payload={"n": 1})))

        assert run_at(row, later).result == {"n": 1}

    def test_other_code_finds_its_waits(self, declared, run_at, later, order, emit_at):
        """Waits are no drift: with the code changed around them, the task goes on."""
        row = declared(asking(ask=lambda: None))
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1))

        declared(
            asking(ask=lambda: None, wait=lambda job: job.wait_for("otp.given", within=TEN_MINUTES * 2)), start=False
        )

        assert run_at(row, later + timedelta(minutes=1)).state == State.COMPLETED

    def test_records_of_waits_tell_what_they_wait_for(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        until = run_at(row, later).scheduled_at
        record = StepRecord.objects.get()
        assert (record.kind, record.code, record.origin) == (StepKind.WAIT, "", row.pk)
        assert record.place["until"] == until.isoformat()

        event = emit_at("otp.given", order, later + timedelta(minutes=1)).event
        run_at(row, later + timedelta(minutes=1))

        record = StepRecord.objects.get()
        assert (record.kind, record.result) == (StepKind.OVER, str(event.pk))


class TestSomebodyElse:
    def test_runs_it_now_and_it_rests_again(self, declared, run_at, later):
        row = declared(asking())
        until = run_at(row, later).scheduled_at
        run_now(task_ids=[row.pk], reason=Reason.operator("why"), now=later, using="default")

        done = run_at(row, later + timedelta(minutes=1))

        assert (done.state, done.reason_code, done.scheduled_at) == (State.RETRYABLE, "waiting", until)

    def test_ends_its_run(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        run_at(row, later)

        emit_at("order.closed", order, later + timedelta(minutes=1))

        assert state_of(row)[:2] == (State.CANCELLED, "exit")

    def test_is_itself_and_rests_in_no_run_that_has_ended(self, declared, run_at, later, order, emit_at):
        def wait(job):
            emit_at("order.closed", order, later)
            job.wait_for("otp.given", within=TEN_MINUTES)

        row = declared(asking(wait=wait))

        assert run_at(row, later).scheduled_at <= later + timedelta(seconds=5)
        assert run_at(row, later + timedelta(seconds=5)).state == State.CANCELLED


class TestNoWakeUpIsLost:
    def test_between_the_look_and_the_rest(self, declared, later, order, emit_at):
        """The event is recorded when the handler has decided to rest, and has not yet."""
        row = declared(asking())
        [attempt] = begin_attempts([row.pk], token=None, worker="w", now=later, using="default")
        look([attempt], now=later, using="default")
        write = call(attempt)
        emit_at("otp.given", order, later + timedelta(seconds=1))

        [done] = record_together([write], now=later + timedelta(seconds=2), using="default")

        assert (done.state, done.scheduled_at) == (State.RETRYABLE, later + timedelta(seconds=2))


class TestWhereItCannotWait:
    @pytest.mark.parametrize("options", [{"atomic": True}, {"bulk": 5}])
    def test_says_so(self, declared, run_at, later, options):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), **options)
            def work(self, order):
                self.wait_for("otp.given", within=TEN_MINUTES)

        done = run_at(declared(Job), later)

        assert "InvalidInput" in done.error
        assert done.state == State.RETRYABLE
        assert done.reason_code == "error"

    def test_says_so_in_a_step(self, declared, run_at, later):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), atomic=False)
            def work(self, order):
                self.ask()

            @step(atomic=False)
            def ask(self):
                self.wait_for("otp.given", within=TEN_MINUTES)

        assert "InvalidInput" in run_at(declared(Job), later).error

    def test_says_so_in_a_transaction(self, declared, run_at, later):
        def wait(job):
            with transaction.atomic():
                job.wait_for("otp.given", within=TEN_MINUTES)

        assert "atomic()" in run_at(declared(asking(wait=wait)), later).error

    def test_says_so_in_another_thread(self, declared, run_at, later):
        raised = []

        def wait(job):
            def there():
                try:
                    job.wait_for("otp.given", within=TEN_MINUTES)
                except InvalidInput as error:
                    raised.append(error)

            thread = threading.Thread(target=there)
            thread.start()
            thread.join()

        run_at(declared(asking(wait=wait)), later)

        assert len(raised) == 1

    @pytest.mark.parametrize(
        ("names", "given"),
        [
            ((), {}),
            (("a b",), {}),
            (("",), {}),
            ((3,), {}),
            (("a", "a"), {}),
            (("x" * 101,), {}),
            (("a",), {"within": timedelta(0)}),
            (("a",), {"within": timedelta(-1)}),
            (("a",), {"within": 600}),
            (("a",), {"within": timedelta(days=365_000)}),
            (("a",), {"key": 3}),
            (("a",), {"key": "x" * 201}),
            (("a",), {"name": "x" * 91}),
            (tuple(f"{n}{'x' * 90}" for n in range(9)), {}),
        ],
    )
    def test_says_what_is_wrong_with_what_it_is_given(self, names, given):
        with pytest.raises(InvalidInput):
            asking()().wait_for(*names, **{"within": TEN_MINUTES} | given)

    def test_is_given_what_it_gets_in_a_unit_test(self):
        event = object()

        assert asking()(awaited=event).wait_for("otp.given", within=TEN_MINUTES) is event


class TestAHandlerThatCatchesEverything:
    def test_rests_all_the_same(self, declared, run_at, later):
        def wait(job):
            try:
                job.wait_for("otp.given", within=TEN_MINUTES)
            except BaseException:  # noqa: BLE001 (what it is about)
                Effect.objects.create(name="caught")

        assert run_at(declared(asking(wait=wait)), later).reason_code == "waiting"


class TestAnAdHocTask:
    def test_waits_too(self, declared, run_at, later, order, emit_at, schedule_at, now):
        declared(asking(), start=False)
        row = schedule_at("job.work", order, later, now).task
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1), payload={"n": 1})

        assert run_at(row, later + timedelta(minutes=1)).result == {"n": 1}


class TestASystemTimeline:
    def test_waits_too(self, declared, run_at, later, emit_at, start_at, now):
        class Job(Timeline):
            @task(after(days=1), atomic=False)
            def work(self):
                return bool(self.wait_for("rates.published", within=TEN_MINUTES))

        declared(Job, start=False)
        start_at("job", None, now)
        row = ScheduledTask.objects.get()
        assert run_at(row, later).reason_code == "waiting"
        emit_at("rates.published", None, later + timedelta(minutes=1))

        assert run_at(row, later + timedelta(minutes=1)).result is True
