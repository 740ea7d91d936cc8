"""Sleep in a handler: the task rests until the moment, and the handler goes on behind it."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction

from tests.engine import conftest as engine
from tests.testapp.models import Order
from timeline import RetryAfter, Timeline, after, step, task
from timeline.exceptions import InvalidInput, NaiveDatetime
from timeline.features.waits.reading import wait_of
from timeline.lifecycle import Reason, State
from timeline.models import StepKind, StepRecord
from timeline.operations.move import run_now

declared = engine.declared  # Fixtures.
again = engine.again

DAY = timedelta(days=1)


def sleeping(handler, **options):
    class Job(Timeline):
        entity = "testapp.Order"
        exits = {"order.closed": "closed"}
        starts_on = "order.placed"

        @task(after(days=1), atomic=False, **options)
        def work(self, order):
            return handler(self)

        @step(atomic=False)
        def tell(self, name):
            return name

    return Job


class TestAHandlerThatSleeps:
    def test_rests_until_the_moment(self, declared, run_at, later):
        row = declared(sleeping(lambda job: job.sleep(days=2)))

        done = run_at(row, later)

        assert (done.state, done.reason_code) == (State.RETRYABLE, "waiting")
        assert later + 2 * DAY <= done.scheduled_at < later + 2 * DAY + timedelta(minutes=1)
        assert done.reason.startswith("sleeps until ")
        assert (done.failures, done.lost, done.error, done.awaits) == (0, 0, "", "")

    def test_goes_on_behind_it(self, declared, run_at, again, later):
        done = []

        def handler(job):
            done.append(job.tell("before"))
            job.sleep(days=2)
            done.append(job.tell.keyed("2")("behind"))
            return "done"

        row = declared(sleeping(handler))
        run_at(row, later)

        assert again(row).state == State.COMPLETED
        assert done == ["before", "before", "behind"]
        assert list(StepRecord.objects.order_by("pk").values_list("name", "kind", "attempt")) == [
            ("tell", StepKind.DONE, 1),
            ("(sleep) 1", StepKind.OVER, 2),
            ("tell#2", StepKind.DONE, 2),
        ]
        assert StepRecord.objects.get(name="(sleep) 1").seconds == pytest.approx(2 * 86400, abs=60)

    def test_sleeps_several_times_by_their_number_or_name(self, declared, run_at, again, later):
        def handler(job):
            for _ in range(2):
                job.sleep(timedelta(hours=1))
            job.sleep(hours=3, name="long")

        row = declared(sleeping(handler))
        begun = [run_at(row, later).scheduled_at, again(row).scheduled_at, again(row).scheduled_at]

        assert again(row).state == State.COMPLETED
        assert [round((b - a) / timedelta(hours=1), 1) for a, b in pairwise(begun)] == [1, 3]
        assert [record.name for record in StepRecord.objects.order_by("pk")] == [
            "(sleep) 1",
            "(sleep) 2",
            "(sleep) long",
        ]

    def test_rests_on_when_it_is_run_early(self, declared, run_at, later):
        row = declared(sleeping(lambda job: job.sleep(days=2)))
        until = run_at(row, later).scheduled_at
        run_now(task_ids=[row.pk], reason=Reason.operator("look now"), now=later, using="default")

        early = run_at(row, later)

        assert (early.state, early.scheduled_at) == (State.RETRYABLE, until)

    def test_is_not_slept_anew_by_a_retry(self, declared, run_at, again, later):
        fails = [True]

        def handler(job):
            job.sleep(days=2)
            if fails:
                fails.pop()
                raise RetryAfter(timedelta(minutes=1))

        row = declared(sleeping(handler))
        until = run_at(row, later).scheduled_at
        failed = again(row)

        assert failed.reason_code == "retry_after"
        assert failed.scheduled_at < until + timedelta(hours=1)
        assert again(row).state == State.COMPLETED

    def test_sleeps_until_a_moment(self, declared, run_at, later, again):
        row = declared(sleeping(lambda job: job.sleep(until=later + 3 * DAY)))

        assert run_at(row, later).scheduled_at == later + 3 * DAY
        assert again(row).state == State.COMPLETED

    def test_goes_on_at_once_if_the_moment_has_passed(self, declared, run_at, later):
        row = declared(sleeping(lambda job: job.sleep(until=later - DAY)))

        assert run_at(row, later).state == State.COMPLETED

    def test_keeps_a_moment_that_is_computed_anew(self, declared, run_at, again, later):
        """The first answer stands, or a moment that is counted from now would never come."""
        moments = [later + 3 * DAY, later + 9 * DAY]
        row = declared(sleeping(lambda job: job.sleep(until=moments.pop(0))))
        run_at(row, later)

        assert again(row).state == State.COMPLETED

    @pytest.mark.parametrize(("span", "hours"), [({"days": 1}, 23), ({"hours": 24}, 24)], ids=str)
    def test_counts_days_on_the_calendar_and_hours_exactly(self, declared, run_at, order, span, hours):
        """Clocks went forward in Berlin in the night to 29 March 2026."""
        Order.objects.filter(pk=order.pk).update(zone="Europe/Berlin")
        at = datetime(2026, 3, 28, 12, tzinfo=ZoneInfo("Europe/Berlin")).astimezone(UTC)
        cls = sleeping(lambda job: job.sleep(**span))
        cls.time_zone = "zone"

        due = run_at(declared(cls), at).scheduled_at

        assert round((due - at) / timedelta(hours=1)) == hours

    def test_ends_by_an_exit(self, declared, run_at, later, order, emit_at):
        row = declared(sleeping(lambda job: job.sleep(days=2)))
        run_at(row, later)

        emit_at("order.closed", order, later)

        row.refresh_from_db()
        assert (row.state, row.reason_code) == (State.CANCELLED, "exit")

    def test_looks_at_once_if_it_has_ended_its_own_run(self, declared, run_at, later, order, emit_at):
        """It would else lie there for two days, only to be cancelled."""

        def handler(job):
            emit_at("order.closed", order, later)
            job.sleep(days=2)

        row = declared(sleeping(handler))

        assert run_at(row, later).scheduled_at <= later + timedelta(minutes=1)

    def test_cannot_be_caught(self, declared, run_at, later):
        def handler(job):
            with suppress(BaseException):
                job.sleep(days=2)
            job.tell("never")

        row = declared(sleeping(handler))

        assert run_at(row, later).reason_code == "waiting"
        assert not StepRecord.objects.filter(name="tell").exists()


class TestAWaitBehindASleep:
    def test_gets_what_came_while_it_slept(self, declared, run_at, later, order, emit_at, again):
        def handler(job):
            job.tell("ask")
            job.sleep(days=2)
            given = job.wait_for("code.given", within=DAY)
            return given and given.payload

        row = declared(sleeping(handler))
        run_at(row, later)
        emit_at("code.given", order, later + timedelta(hours=1), payload={"n": 1})

        assert again(row).result == {"n": 1}

    def test_shows_for_what_it_waits(self, declared, run_at, later, order, again):
        def handler(job):
            job.sleep(days=2)
            job.wait_for("code.given", within=DAY)

        row = declared(sleeping(handler))
        run_at(row, later)
        resting = again(row)

        assert wait_of(resting, using="default").events == ["code.given"]


class TestOtherCode:
    """What sleeps is as deterministic as steps are."""

    def test_that_sleeps_another_time_pauses_the_task(self, declared, run_at, later, again):
        row = declared(sleeping(lambda job: job.sleep(days=2)))
        run_at(row, later)
        declared(sleeping(lambda job: [job.sleep(days=3)], priority=1), start=False)
        StepRecord.objects.update(code="of before")

        done = again(row)

        assert (done.state, done.reason_code) == (State.RETRYABLE, "definition")
        assert "(sleep) 1" in done.reason

    def test_that_sleeps_no_more_pauses_the_task(self, declared, run_at, later, again):
        row = declared(sleeping(lambda job: job.sleep(days=2)))
        run_at(row, later)
        declared(sleeping(lambda job: job.tell("at once")), start=False)
        StepRecord.objects.update(code="of before")

        assert again(row).reason_code == "definition"

    def test_that_sleeps_alike_goes_on(self, declared, run_at, later, again):
        row = declared(sleeping(lambda job: job.sleep(days=2)))
        run_at(row, later)
        StepRecord.objects.update(code="of before")

        assert again(row).state == State.COMPLETED


class TestRefusals:
    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"days": 0},
            {"days": -1},
            {"hours": -0.5},
            {"days": 4000},
            {"days": 10**12},
            {"hours": "2"},
            {"days": 1.5},
        ],
        ids=str,
    )
    def test_of_no_time(self, given):
        with pytest.raises(InvalidInput, match=r"^sleep: "):
            sleeping(None)().sleep(**given)

    def test_of_two_ways_at_once(self):
        with pytest.raises(InvalidInput, match=r"sleep: has a length, and until="):
            sleeping(None)().sleep(days=1, until=datetime(2030, 1, 1, tzinfo=UTC))

    @pytest.mark.parametrize("moment", [datetime(2030, 1, 1), "tomorrow", 5])  # noqa: DTZ001 (that is what is refused)
    def test_of_what_is_no_moment(self, moment):
        with pytest.raises(NaiveDatetime, match=r"^until: "):
            sleeping(None)().sleep(until=moment)

    def test_of_a_name_that_is_too_long(self):
        with pytest.raises(InvalidInput, match=r"^name: "):
            sleeping(None)().sleep(days=1, name="x" * 91)

    def test_of_a_unit_that_there_is_not(self):
        with pytest.raises(TypeError, match=r"sleep\(\) takes no dayss=. Did you mean 'days'\?"):
            sleeping(None)().sleep(dayss=2)

    def test_twice_under_one_name(self, declared, run_at, later, again):
        def handler(job):
            job.sleep(hours=1, name="a")
            job.sleep(hours=1, name="a")

        row = declared(sleeping(handler))
        run_at(row, later)

        assert "Tell the calls apart: name=…." in again(row).error

    def test_in_a_transaction(self, declared, run_at, later):
        def handler(job):
            with transaction.atomic():
                job.sleep(days=2)

        row = declared(sleeping(handler))

        assert "is called in a transaction" in run_at(row, later).error

    def test_in_an_atomic_handler(self, declared, run_at, later):
        """Where its class did not see it."""

        def nap(job):
            job.sleep(days=2)

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1))
            def work(self, order):
                nap(self)

        row = declared(Job)

        assert "Declare the task with atomic=False" in run_at(row, later).error


class TestAUnitTest:
    def test_does_not_sleep(self):
        assert sleeping(lambda job: (job.sleep(days=2), 1)[1])().work(None) == 1
