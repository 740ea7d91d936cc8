"""Errors that are answers, and a bound against spinning: decided under the lock of the run, and written with the outcome."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import ClassVar

import pytest
from django.db import OperationalError
from django.test import override_settings

from tests.machines import is_whole
from tests.testapp.models import Effect, Order
from timeline import STAY, WORKING, Cancel, Discard, Machine, Retry, RetryAfter, Then, never, on, task, to
from timeline.engine.attempts import begin_attempts
from timeline.engine.finalize import fail_for_time
from timeline.engine.groups import run
from timeline.exceptions import DefinitionError, InvalidInput, TimedOut
from timeline.lifecycle import ReasonCode, State
from timeline.models import LogEntry, RunEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, explain, redrive, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)


class PortalError(Exception): ...


class PortalTimeout(PortalError): ...


class Other(Exception): ...


WAYS = [
    pytest.param({"atomic": True}, id="atomic"),
    pytest.param({"atomic": "own"}, id="own"),
    pytest.param({"atomic": "shared"}, id="shared"),
    pytest.param({"atomic": False}, id="plain"),
    pytest.param({"bulk": 10}, id="bulk"),
    pytest.param({"bulk": 10, "atomic": False}, id="plain bulk"),
    pytest.param({"atomic": False, "is_async": True}, id="async"),
]
TABLE = {
    "works": {"done": "over", "timed.out": "retries", "again": STAY},
    "retries": {"due": "works"},
    "people": {"helped": "works"},
    "over": {},
    WORKING: {"unknown": "people"},
}
ERRORS = {PortalTimeout: "timed.out", PortalError: "unknown", Exception: "unknown"}


def job(say, *, bulk=None, is_async=False, errors=ERRORS, table=TABLE, working=("works",), given=None, **options):
    """A machine whose one task is bound to ``works``."""
    if bulk:

        def work(self, orders):
            return {order: _caught(say, self.tasks[order], order) for order in orders}

        options["bulk"] = bulk
    elif is_async:

        async def work(self, order):
            return say(self, order)
    else:

        def work(self, order):
            return say(self, order)

    declared = {
        "entity": "testapp.Order",
        "initial": "works",
        "table": table,
        "working": working,
        "errors": errors,
        "timers": {("retries", "people"): never},
        "work": task(on("works"), retry=Retry(max_attempts=2), **options)(work),
    }
    return type("Job", (Machine,), declared | (given or {}))


def _caught(say, context, order):
    try:
        return say(context, order)
    except Exception as error:  # noqa: BLE001 (a call for many gives back what each failed with)
        return error


def raising(error):
    def say(_context, _order):
        raise error

    return say


def run_all(cls, count=1, moment=None):
    with only_timelines(cls):
        orders = [Order.objects.create() for _ in range(count)]
        for order in orders:
            start(cls, order)
        return run_due()


def run_due():
    rows = list(ScheduledTask.objects.filter(state__in=["scheduled", "available", "retryable"]).order_by("pk"))
    moment = max(row.scheduled_at for row in rows)
    return run(task_ids=[row.pk for row in rows], clock=lambda: moment, using="default")


def states():
    assert all(is_whole(known) for known in TimelineRun.objects.all())
    return list(TimelineRun.objects.values_list("state", flat=True).order_by("pk"))


def ends():
    return set(ScheduledTask.objects.values_list("state", "reason_code"))


class TestAnError:
    @pytest.mark.parametrize("options", WAYS)
    def test_is_the_answer_that_its_class_means(self, options):
        run_all(job(raising(PortalTimeout("slow")), **options), count=3)
        while ScheduledTask.objects.exclude(finished_at__isnull=False).exists():  # Shared, each is entered again alone.
            run_due()

        assert states() == ["retries"] * 3
        assert ends() == {(State.COMPLETED, ReasonCode.THEN)}
        row = ScheduledTask.objects.first()
        assert (row.result, row.failures) == ({"then": "timed.out"}, 0)
        entry = LogEntry.objects.filter(task=row).latest("seq")
        assert entry.detail["error"]["message"] == "slow"
        assert row.reason.endswith("PortalTimeout was raised, which means timed.out")
        assert "PortalTimeout was raised, which means timed.out" in explain(row)

    @pytest.mark.parametrize("options", WAYS)
    @pytest.mark.parametrize("word", ["when", "do"])
    def test_of_a_condition_or_an_effect_is_none(self, word, options):
        """The handler has come to its end, and has not raised it."""

        def refuse(_order):
            raise PortalTimeout("slow")

        table = TABLE | {"works": TABLE["works"] | {"done": to("over", **{word: refuse})}}
        run_all(job(lambda _self, _order: Then("done"), table=table, **options))

        assert states() == ["works"]
        assert ends() == {(State.RETRYABLE, ReasonCode.ERROR)}

    @pytest.mark.parametrize("options", WAYS)
    def test_is_logged_with_its_traceback_kept_on_the_row_and_told(self, options, caplog):
        """A mistake of the handler may be among what ``Exception`` stands for: nobody would see it otherwise."""
        run_all(job(raising(ValueError("no such room")), **options))

        [line] = [record for record in caplog.records if record.name == "timeline.endings"]
        row = ScheduledTask.objects.get(finished_at__isnull=False)
        assert (line.levelname, line.exc_info[0], line.task_id) == ("WARNING", ValueError, str(row.pk))
        assert "raised an error at attempt 1, and its machine takes that as unknown: ValueError: no such room" in (
            line.getMessage()
        )
        assert row.error == "ValueError: no such room"
        assert "raise error\nValueError: no such room" in row.log.latest("seq").detail["error"]["traceback"]
        assert "which means unknown. The error was ValueError: no such room." in explain(row)

    def test_is_logged_once_for_a_call_that_took_too_long(self, order, later, caplog):
        cls = job(raising(Other()), errors={TimedOut: "timed.out"}, atomic=False, timeout=timedelta(minutes=1))
        with only_timelines(cls):
            start(cls, order)
            ids = list(ScheduledTask.objects.values_list("pk", flat=True))
            attempts = begin_attempts(ids, token=None, worker="", now=later, using="default")
            fail_for_time(attempts, timedelta(minutes=1), "", now=later, using="default", keeper=None)

        [line] = [record for record in caplog.records if record.name == "timeline.endings"]
        assert (line.levelname, line.reason_code) == ("WARNING", "then")

    def test_is_nothing_to_log_where_a_handler_says_where_to_go(self, caplog):
        run_all(job(lambda _context, _order: Then("done"), atomic=False))

        assert [record for record in caplog.records if record.name == "timeline.endings"] == []

    @pytest.mark.parametrize("options", [{}, {"atomic": "own"}])
    def test_undoes_what_the_handler_wrote(self, options):
        def say(context, order):
            Effect.objects.create(name="written")
            raise PortalTimeout

        run_all(job(say, **options))

        assert not Effect.objects.exists()
        assert states() == ["retries"]

    @pytest.mark.parametrize(
        ("error", "wanted"),
        [(PortalTimeout(), "retries"), (PortalError(), "people"), (Other(), "people"), (ValueError(), "people")],
    )
    def test_of_several_classes_means_the_nearest(self, error, wanted):
        run_all(job(raising(error), atomic=False))

        assert states() == [wanted]

    def test_falls_through_to_the_next_class_where_the_state_does_not_take_it(self):
        table = {**TABLE, "works": {"done": "over", "wait": "retries"}, "retries": {"due": "works", "timed.out": STAY}}

        run_all(job(raising(PortalTimeout()), table=table, atomic=False))

        assert states() == ["people"]

    @pytest.mark.parametrize("errors", [{}, {Other: "unknown"}])
    def test_that_means_nothing_is_an_ordinary_failure(self, errors):
        run_all(job(raising(PortalTimeout("slow")), errors=errors, atomic=False))

        assert (states(), ends()) == (["works"], {(State.RETRYABLE, ReasonCode.ERROR)})
        assert ScheduledTask.objects.get().failures == 1

    def test_that_no_state_takes_any_more_is_an_ordinary_failure(self):
        table = {"works": {"a": "lost"}, "lost": {"x": "over", "timed.out": STAY}, "over": {}}
        cls = job(
            raising(PortalTimeout()), errors={PortalTimeout: "timed.out"}, table=table, working=("works", "lost"),
            given={"timers": {}}, atomic=False,
        )  # fmt: skip

        run_all(cls)

        assert (states(), ends()) == (["works"], {(State.RETRYABLE, ReasonCode.ERROR)})

    @pytest.mark.parametrize(
        ("error", "end"),
        [
            (Cancel("no"), (State.CANCELLED, ReasonCode.HANDLER)),
            (Discard("no"), (State.DISCARDED, ReasonCode.HANDLER)),
            (RetryAfter(timedelta(hours=1)), (State.RETRYABLE, ReasonCode.RETRY_AFTER)),
            (OperationalError("deadlock detected"), (State.RETRYABLE, ReasonCode.ERROR)),
        ],
        ids=lambda given: type(given).__name__,
    )
    def test_is_none_where_the_handler_says_what_becomes_of_it_or_it_passes(self, error, end):
        if isinstance(error, OperationalError):
            error.__cause__ = sqlite3.OperationalError("database is locked")

        run_all(job(raising(error), atomic=False))

        assert (states(), ends()) == (["works"], {end})

    def test_may_be_that_the_time_was_up(self, order, later):
        cls = job(raising(Other()), errors={TimedOut: "timed.out"}, atomic=False, timeout=timedelta(minutes=1))
        with only_timelines(cls):
            start(cls, order)
            ids = list(ScheduledTask.objects.values_list("pk", flat=True))
            attempts = begin_attempts(ids, token=None, worker="", now=later, using="default")

            fail_for_time(attempts, timedelta(minutes=1), "", now=later, using="default", keeper=None)

        assert (states(), ends()) == (["retries"], {(State.COMPLETED, ReasonCode.THEN)})

    def test_writes_nothing_of_an_attempt_that_is_not_ours_any_more(self):
        def say(context, order):
            emit("timed.out", order)
            ScheduledTask.objects.filter(pk=context.task.pk).exists()
            raise PortalTimeout

        run_all(job(say, atomic=False))

        # What it emitted stands; the error is an answer of another visit by then, which takes none of it.
        assert RunEntry.objects.filter(event="timed.out").count() == 1


class TestSpinning:
    LOOP: ClassVar = {
        "works": {"again": STAY, "enough": "people", "done": "over"},
        "people": {"helped": "works"},
        "over": {},
    }

    def spinning(self, **given):
        return job(
            lambda _context, _order: Then("again"), table=self.LOOP, errors={}, atomic=False,
            given={"timers": {"people": never}, "most_moves": 5} | given,
        )  # fmt: skip

    def spin(self, cls, moment, most=30):
        for _ in range(most):
            ids = list(ScheduledTask.objects.filter(finished_at=None).values_list("pk", flat=True))
            if not ids:
                return
            run(task_ids=ids, clock=lambda: moment, using="default")

    @override_settings(TIMELINE={"ALERTS": ["ops@example.com"]})
    def test_ends_at_the_bound_exactly_and_people_are_told(self, now):
        cls = self.spinning()
        with only_timelines(cls):
            order = Order.objects.create()
            start(cls, order)
            self.spin(cls, now)

            assert TimelineRun.objects.get(timeline="job").moves == 5
            row = ScheduledTask.objects.get(state=State.DISCARDED)
            assert row.reason.startswith("job of testapp.order")
            assert "has moved 5 times within an hour, and is not moved by 'again'" in row.error
            assert "MovesTooOften" in row.error
            emit("enough", order)

        assert states() == ["people"]

    def test_goes_on_when_an_hour_has_passed(self, now):
        cls = self.spinning()
        with only_timelines(cls):
            order = Order.objects.create()
            start(cls, order)
            self.spin(cls, now)
            dead = ScheduledTask.objects.get(state=State.DISCARDED)
            redrive(dead, reason="mended")
            self.spin(cls, now + timedelta(hours=1, seconds=1), most=3)

        assert TimelineRun.objects.get().moves == 8

    def test_comes_to_where_the_machine_says(self, now):
        cls = self.spinning(spinning="enough")
        with only_timelines(cls):
            start(cls, Order.objects.create())
            self.spin(cls, now)

        assert states() == ["people"]
        assert RunEntry.objects.latest("seq").event == "enough"
        assert not ScheduledTask.objects.filter(state=State.DISCARDED).exists()

    def test_ends_where_that_goes_round_as_well(self, now):
        table = {
            "works": {"again": STAY, "enough": "checks"},
            "checks": {"again": "works", "enough": STAY, "done": "over"},
        }

        def check(self, order):
            return Then("again")

        cls = job(
            lambda _context, _order: Then("again"), table=table | {"over": {}}, errors={}, atomic=False,
            working=("works", "checks"),
            given={"timers": {}, "check": task(on("checks"))(check), "most_moves": 5, "spinning": "enough"},
        )  # fmt: skip
        with only_timelines(cls):
            start(cls, Order.objects.create())
            self.spin(cls, now)

        assert states() == ["checks"]
        assert TimelineRun.objects.get().moves == 6
        assert "MovesTooOften" in ScheduledTask.objects.get(state=State.DISCARDED).error

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({"most_moves": 0}, "has most_moves = 0"),
            ({"most_moves": True}, "most_moves"),
            ({"spinning": "x"}, "spinning = 'x'"),
        ],
    )
    def test_is_declared_or_refused(self, given, problem):
        with pytest.raises(DefinitionError, match=problem):
            self.spinning(**given)


class TestVisits:
    def test_are_counted_with_this_one(self, order):
        cls = job(lambda _context, _order: None, atomic=False)
        with only_timelines(cls):
            started = start(cls, order).run
            for event in ("again", "timed.out", "due", "again"):
                emit(event, order)
            started.refresh_from_db()

            assert (started.visits("works"), started.visits("retries"), started.visits("people")) == (4, 1, 0)
            assert started.visits("works", since="retries") == 2
            context = cls(run=started)
            assert (context.visits("works"), context.visits("works", since="retries")) == (4, 2)
            with pytest.raises(InvalidInput, match="'wroks' is no state of job"):
                context.visits("wroks")
            with pytest.raises(InvalidInput, match="no run to count it in"):
                cls(run=None).visits("works")


class TestDeclaring:
    @pytest.mark.parametrize(
        ("errors", "problem"),
        [
            (3, "has errors = 3"),
            ({"x": "unknown"}, "which is no class of exceptions"),
            ({KeyboardInterrupt: "unknown"}, "which is no class of exceptions"),
            ({Cancel: "unknown"}, "which a handler raises on purpose"),
            (
                {Exception: "unknwn"},
                "means 'unknwn' by Exception, which is no event of its table. Did you mean 'unknown'",
            ),
            ({Exception: "due"}, "means 'due' by Exception, which 'works' does not take"),
        ],
    )
    def test_says_what_is_wrong(self, errors, problem):
        with pytest.raises(DefinitionError, match=problem):
            job(lambda _context, _order: None, errors=errors)
