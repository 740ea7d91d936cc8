"""Call a handler: its guards first, in the entity's language and time zone, and what it returns for its result."""

from contextvars import ContextVar
from datetime import date

import pytest
from django.utils import timezone, translation

from tests.testapp.models import Order
from timeline.engine.attempts import begin_attempts
from timeline.engine.execute import call
from timeline.lifecycle import ReasonCode, State, Trigger
from timeline.models import ScheduledTask
from timeline.operations.current import running

SEEN = ContextVar("SEEN", default="nothing")


class TestTheContext:
    @pytest.mark.parametrize(
        ("zone", "language", "told"),
        [
            ("Asia/Tokyo", "de", ["Asia/Tokyo", "de"]),
            ("", "", ["UTC", "en"]),
            ("Nowhere/Land", "", ["UTC", "en"]),
        ],
    )
    def test_has_the_entitys_zone_and_language(self, work, run_at, later, zone, language, told):
        Order.objects.update(zone=zone, language=language)
        row = work(lambda job, order: [timezone.get_current_timezone_name(), translation.get_language()])

        done = run_at(row, later)

        assert done.result == told
        assert (timezone.get_current_timezone_name(), translation.get_language()) == ("UTC", "en")


class TestGuardsThatAreFunctions:
    @pytest.fixture(autouse=True)
    def _paid(self, order):
        Order.objects.update(paid=True)

    def test_are_named_in_the_reason(self, work, run_at, later):
        def is_unpaid(order):
            return not order.paid

        assert run_at(work(only_if=is_unpaid), later).reason == "only_if is_unpaid"

    def test_are_read_at_the_moment_of_running(self, work, run_at, later):
        row = work(unless=lambda order: order.note == "stop")
        Order.objects.update(note="stop")

        assert run_at(row, later).state == State.CANCELLED

    def test_that_raise_fail_the_attempt(self, work, run_at, later):
        seen = []
        row = work(lambda job, order: seen.append(1), only_if=lambda order: order.nothing)

        done = run_at(row, later)

        assert (done.state, done.failures, seen) == (State.RETRYABLE, 1, [])
        assert "has no attribute 'nothing'" in done.reason


class TestResults:
    @pytest.mark.parametrize("result", [None, 0, "", [], False, "text", 1.5])
    def test_keeps_any_plain_result(self, work, run_at, later, result):
        row = work(lambda job, order: result)

        run_at(row, later)

        assert ScheduledTask.objects.get(pk=row.pk).result == result

    @pytest.mark.parametrize("atomic", [True, False])
    @pytest.mark.parametrize(
        "result", [{1, 2}, date(2026, 1, 1), {"at": float("nan")}, {1: "key"}, ("a",), "x" * 70_000]
    )
    def test_takes_a_result_that_is_not_plain_json_for_a_failure(self, work, run_at, later, result, atomic):
        row = work(lambda job, order: result, atomic=atomic)

        done = run_at(row, later)

        assert (done.state, done.failures, done.result) == (State.RETRYABLE, 1, None)
        assert done.reason.startswith("result: ")


class TestCall:
    @pytest.fixture
    def attempt_at(self, work, later):
        """Begin an attempt: ``attempt_at(handler, …)``; its entity is there as the last look leaves it."""

        def begin(handler, **options):
            row = work(handler, **options)
            [attempt] = begin_attempts([row.pk], token=None, worker="", now=later, using="default")
            attempt.entity = Order.objects.get()
            return attempt

        return begin

    def test_marks_the_task_as_being_run_and_no_longer_than_the_call(self, attempt_at):
        seen = []
        attempt = attempt_at(lambda job, order: seen.append(running()))

        call(attempt)

        assert seen == [{attempt.task.pk}]
        assert running() == set()

    def test_ends_what_the_handler_makes_of_this_threads_context(self, attempt_at):
        def handler(job, order):
            SEEN.set("something")
            timezone.activate("Asia/Tokyo")
            translation.activate("de")

        call(attempt_at(handler))

        assert (SEEN.get(), timezone.get_current_timezone_name(), translation.get_language()) == (
            "nothing",
            "UTC",
            "en",
        )

    def test_writes_nothing_itself(self, attempt_at):
        write = call(attempt_at(lambda job, order: {"sent": "ü"}))

        assert (write.triggers, write.reason.code, write.result) == (
            (Trigger.COMPLETE,),
            ReasonCode.DONE,
            '{"sent": "ü"}',
        )
        assert ScheduledTask.objects.get(task_key="job.work").state == State.ACTIVE

    def test_asks_no_handler_of_a_timeline_in_shadow_but_its_guards(self, attempt_at):
        entered, asked = [], []

        write = call(
            attempt_at(
                lambda job, order: entered.append(1), in_shadow=True, unless=lambda order: bool(asked.append(order.pk))
            )
        )

        assert (write.triggers, write.reason.code) == ((Trigger.COMPLETE,), ReasonCode.SHADOW)
        assert (entered, asked) == ([], [Order.objects.get().pk])

    def test_leaves_to_who_called_what_the_handler_raises(self, attempt_at):
        def handler(job, order):
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            call(attempt_at(handler))
