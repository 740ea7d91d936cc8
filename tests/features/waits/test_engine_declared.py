"""A task that waits for an event before it is entered: ``@task(wait_for(…))``."""

from datetime import timedelta

import pytest

from tests.engine import conftest as engine
from tests.testapp.models import Order
from timeline import Timeline, after, task, wait_for
from timeline.exceptions import DefinitionError
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask
from timeline.operations.move import run_now
from timeline.operations.reconcile import reconcile
from timeline.reading.explanation import explain
from timeline.testing import only_timelines

declared = engine.declared  # Fixtures.

THREE_DAYS = timedelta(days=3)


def settling(got, **options):
    class Job(Timeline):
        entity = "testapp.Order"
        starts_on = "order.paid"

        @task(wait_for("order.paid", "order.extended", within=THREE_DAYS), **options)
        def work(self, order):
            got.append(self.awaited)
            return self.awaited.name if self.awaited else "nothing"

    return Job


def settling_async(got):
    class Job(Timeline):
        entity = "testapp.Order"

        @task(wait_for("order.paid", "order.extended", within=THREE_DAYS), atomic=False)
        async def work(self, order):
            got.append(self.awaited)
            return self.awaited.name if self.awaited else "nothing"

    return Job


KINDS = {
    "atomic": settling,
    "plain": lambda got: settling(got, atomic=False),
    "own": lambda got: settling(got, atomic="own"),
    "async": settling_async,
}


@pytest.fixture(params=KINDS)
def row(request, declared):
    return declared(KINDS[request.param]([]))


class TestATaskThatWaits:
    def test_is_scheduled_at_its_deadline(self, row, now):
        assert (row.state, row.scheduled_at) == (State.SCHEDULED, now + THREE_DAYS)
        assert (row.awaits, row.awaits_id) == ("order.paid order.extended", row.entity_id)

    def test_is_waked_by_the_event_and_gets_it(self, row, order, now, later, emit_at, run_at):
        emit_at("order.extended", order, later)

        row.refresh_from_db()
        assert (row.state, row.scheduled_at, row.reason_code) == (State.AVAILABLE, later, "event")
        done = run_at(row, later)
        assert (done.state, done.result) == (State.COMPLETED, "order.extended")

    def test_goes_on_with_nothing_when_the_time_has_run_out(self, row, now, run_at):
        assert run_at(row, now + THREE_DAYS).result == "nothing"

    def test_gets_what_came_before_the_deadline_only(self, row, order, now, emit_at, run_at):
        emit_at("order.paid", order, now + THREE_DAYS)

        assert run_at(row, now + THREE_DAYS).result == "nothing"

    def test_rests_again_if_it_is_run_before(self, row, order, now, later, emit_at, run_at):
        run_now(task_ids=[row.pk], reason=Reason.operator("why"), now=later, using="default")
        done = run_at(row, later)
        assert (done.state, done.reason_code, done.scheduled_at) == (State.RETRYABLE, "waiting", now + THREE_DAYS)

        emit_at("order.paid", order, later + timedelta(hours=1))

        assert run_at(row, later + timedelta(hours=1)).result == "order.paid"

    def test_is_not_waked_by_an_event_of_another(self, row, later, emit_at):
        emit_at("order.paid", Order.objects.create(), later)

        assert ScheduledTask.objects.get(pk=row.pk).state == State.SCHEDULED

    def test_says_what_it_waits_for(self, row, now):
        told = explain(row, now=now, using="default")

        assert "when order.paid or order.extended comes, or 72 hours after the start of the run" in told


class TestAHandlerThatWaitsForOneMore:
    def test_does_not_get_the_event_again_that_its_schedule_waited_for(self, declared, order, later, emit_at, run_at):
        """An event serves one wait of a task."""

        class Job(Timeline):
            entity = "testapp.Order"

            @task(wait_for("order.paid", within=THREE_DAYS), atomic=False)
            def work(self, order):
                first = self.awaited
                second = self.wait_for("order.paid", within=THREE_DAYS)
                return [first.key, second.key]

        row = declared(Job)
        emit_at("order.paid", order, later, key="1")
        assert run_at(row, later).state == State.RETRYABLE
        emit_at("order.paid", order, later + timedelta(hours=1), key="2")

        assert run_at(row, later + timedelta(hours=1)).result == ["1", "2"]


class TestTheEventThatStartedTheRun:
    def test_does_not_end_its_wait(self, declared, order, now, later, emit_at, run_at):
        declared(settling([]), start=False)
        emit_at("order.paid", order, now)
        row = ScheduledTask.objects.get()
        assert row.state == State.SCHEDULED

        emit_at("order.paid", order, later)

        assert run_at(row, later).result == "order.paid"


def settling_within(days):
    """The same task by a deploy that has changed how long it waits."""

    class Job(Timeline):
        entity = "testapp.Order"

        @task(after(days=1))
        def other(self, order): ...

        @task(wait_for("order.paid", within=timedelta(days=days)))
        def work(self, order):
            return self.awaited.name if self.awaited else "nothing"

    return Job


class TestADeploy:
    def test_that_lengthens_the_wait_loses_no_event(self, declared, order, now, later, emit_at, run_at):
        """The row that was waked is of the old schedule: the one that takes its place looks at once."""
        row = declared(settling_within(3))
        emit_at("order.paid", order, later)
        declared(settling_within(5), start=False)

        run_at(row, later)

        again = ScheduledTask.objects.get(task_key="job.work", state=State.AVAILABLE)
        assert (again.previous_id, again.scheduled_at) == (row.pk, later)
        assert run_at(again, later).result == "order.paid"

    def test_whose_row_is_made_again_waits_until_the_new_deadline(self, declared, order, now, later, run_at, emit_at):
        row = declared(settling_within(3))
        run_now(task_ids=[row.pk], reason=Reason.operator("why"), now=later, using="default")
        declared(settling_within(5), start=False)
        run_at(row, later)
        again = ScheduledTask.objects.get(task_key="job.work", state=State.AVAILABLE)

        rests = run_at(again, later)

        assert (rests.reason_code, rests.scheduled_at) == ("waiting", now + timedelta(days=5))
        emit_at("order.paid", order, later + timedelta(hours=1))
        assert run_at(rests, later + timedelta(hours=1)).result == "order.paid"

    def test_that_adds_the_task_finds_what_came_before(self, declared, order, now, later, start_at, emit_at, run_at):
        """What came since the run began counts, though there was no row yet."""

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1))
            def other(self, order): ...

        declared(Job, start=False)
        start_at("job", order, now)
        emit_at("order.paid", order, now + timedelta(hours=1))
        declared(settling_within(5), start=False)
        reconcile(entity=order, now=later, using="default")

        added = ScheduledTask.objects.get(task_key="job.work")
        assert run_at(added, later).result == "order.paid"


class TestSeveralTimelines:
    def test_begin_together(self, declared, now, emit_at):
        """One waits, the other does not."""

        class Other(Timeline):
            entity = "testapp.Order"
            starts_on = "order.paid"

            @task(after(days=1))
            def work(self, order): ...

        with only_timelines(Other, settling([])):
            emit_at("order.paid", Order.objects.create(), now)

        assert sorted(ScheduledTask.objects.values_list("awaits", flat=True)) == ["", "order.paid order.extended"]


class TestWhatIsDeclaredWrongly:
    @pytest.mark.parametrize(
        ("events", "given"),
        [
            ((), {}),
            (("a b",), {}),
            ((3,), {}),
            (("a", "a"), {}),
            (("a",), {"within": timedelta(0)}),
            (("a",), {"within": 3}),
            (("a",), {"key": 3}),
        ],
    )
    def test_is_an_error_at_start(self, events, given):
        with pytest.raises(DefinitionError, match="work"):

            class Job(Timeline):
                entity = "testapp.Order"

                @task(wait_for(*events, **{"within": THREE_DAYS} | given))
                def work(self, order): ...

    def test_is_a_call_for_many(self):
        with pytest.raises(DefinitionError, match="bulk"):

            class Job(Timeline):
                entity = "testapp.Order"

                @task(wait_for("order.paid", within=THREE_DAYS), bulk=10)
                def work(self, orders): ...
