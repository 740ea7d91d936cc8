"""A handler that raises what ends its process, such as ``sys.exit()``: a failed attempt as any other, and then the end."""

import asyncio
import sys

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import transaction

from tests.engine.invoicing import Journal, invoicing
from tests.engine.watching import Killed
from tests.testapp.models import Effect, Order
from timeline import Retry, Timeline, after, task, window
from timeline.engine.groups import Watch
from timeline.lifecycle import OPEN
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import StoryClock, only_timelines

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("patient")]


class End(BaseException):
    """Somebody's own, which nobody is to catch."""


ENDS = [SystemExit, KeyboardInterrupt, GeneratorExit, End]
WAYS = [{"atomic": False}, {"atomic": True}, {"atomic": "own"}, {"atomic": "shared"}]


def named(value):
    return value.__name__ if isinstance(value, type) else str(value["atomic"])


@pytest.fixture
def rows(crowd):
    """Three due tasks, of which the handler of the second raises this: ``rows(error, …)``."""

    def declare(raised, act=None, **options):
        def handler(job, order):
            Effect.objects.create(name=str(order.pk))
            if order.note == "end":
                raise raised
            return "fine"

        made = crowd(3, act or handler, **options)
        Order.objects.filter(pk=made[1].entity_id).update(note="end")
        return made

    return declare


@pytest.fixture
def end(run_all):
    """Run them; the process ends of this error: what the database has of each task then."""

    def run_to_the_end(rows, error, watch=None):
        with pytest.raises(type(error)) as raised:
            run_all(rows, watch=watch or Watch())
        assert raised.value is error
        return there(rows)

    return run_to_the_end


def there(rows):
    return [ScheduledTask.objects.get(pk=row.pk) for row in rows]


def written():
    return sorted(int(name) for name in Effect.objects.values_list("name", flat=True))


class TestAHandler:
    @pytest.mark.parametrize("options", WAYS, ids=named)
    @pytest.mark.parametrize("kind", ENDS, ids=named)
    def test_fails_and_then_ends_the_process(self, rows, end, kind, options, caplog):
        error = kind("of it all")
        made = rows(error, **options)

        first, failed, last = end(made, error)

        assert (failed.state, failed.reason_code, failed.failures, failed.attempt) == ("retryable", "error", 1, 1)
        assert failed.error.startswith(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."))
        assert "raise raised" in failed.log.get(reason_code="error").detail["error"]["traceback"]
        assert str(failed.pk) in caplog.text
        assert {row.reason_code for row in (first, last)} <= {"done", "released"}

    @pytest.mark.parametrize("options", WAYS, ids=named)
    def test_costs_its_neighbours_nothing(self, rows, end, run_all, options):
        """Each writes once, whether it ended before, or was undone or not entered and runs elsewhere."""
        error = SystemExit(1)
        made = rows(error, **options)
        end(made, error)
        Order.objects.update(note="")
        again = {row.pk for row in there(made) if row.state in OPEN}
        ScheduledTask.objects.filter(pk__in=again).update(scheduled_at=made[0].scheduled_at)

        run_all(made)

        assert [row.state for row in there(made)] == ["completed"] * 3
        assert [row.failures for row in there(made)] == [0, 1, 0]
        keys = [int(row.entity_id) for row in made]
        assert written() == sorted(keys + keys[1:2] * (options["atomic"] is False))

    def test_is_discarded_where_it_has_no_budget_left(self, rows, end, caplog):
        error = SystemExit("no more")

        _first, failed, _last = end(rows(error, atomic=False, retry=Retry(max_attempts=1)), error)

        assert (failed.state, failed.failures) == ("discarded", 1)
        assert "SystemExit: no more" in caplog.text

    def test_may_be_one_call_for_many(self, rows, end):
        """Nobody knows whose fault it was: it is counted for none, and each runs alone next."""
        error = SystemExit(1)

        def act(job, orders):
            raise error

        for row in end(rows(error, act, bulk=10), error):
            assert (row.state, row.reason_code, row.failures) == ("retryable", "error", 0)

    @pytest.mark.parametrize("atomic", [True, False])
    def test_may_be_of_a_guard(self, rows, end, atomic):
        error = SystemExit(1)

        def is_over(order):
            if order.note == "end":
                raise error
            return False

        failed = end(rows(error, atomic=atomic, unless=is_over), error)[1]

        assert (failed.state, failed.reason_code, failed.failures) == ("retryable", "error", 1)

    def test_may_be_of_a_calendar_that_the_last_look_asks(self, order, now):
        error, armed = SystemExit(1), []

        def is_free(day):
            if armed:
                raise armed.pop()
            return False

        class Job(Timeline):
            entity = "testapp.Order"
            starts_on = "job.wanted"

            @task(after(days=1), window=window("00:00-24:00", holidays=is_free, outside="cancel"))
            def work(self, order): ...

        with only_timelines(Job), StoryClock(now) as clock:
            emit("job.wanted", order)
            armed.append(error)
            with pytest.raises(SystemExit):
                clock.advance(days=1)

        row = ScheduledTask.objects.get()
        assert (row.state, row.reason_code, row.failures) == ("retryable", "error", 1)

    def test_may_call_a_command_of_ours_that_says_by_its_status_what_it_found(self, crowd, run_all):
        """Nobody polls, says the doctor."""
        [row] = crowd(1, lambda job, order: call_command("timeline_doctor", database="default"), atomic=False)

        with pytest.raises(SystemExit):
            run_all([row])

        [failed] = there([row])
        assert (failed.state, failed.failures) == ("retryable", 1)
        assert failed.error.startswith("SystemExit")

    @pytest.mark.parametrize("options", WAYS, ids=named)
    def test_is_no_failure_where_the_process_is_killed(self, rows, end, options):
        """What comes out of it then is not its own."""
        error = SystemExit(-241)

        assert end(rows(error, **options), error, Killed())[1].state == "active"

    def test_ends_nothing_but_itself_where_it_was_cancelled(self, rows, run_all):
        """A coroutine that it waited for, in a loop of its own."""
        made = rows(asyncio.CancelledError(), atomic=False)

        done = run_all(made)

        assert [row.state for row in done] == ["completed", "retryable", "completed"]

    def test_that_has_committed_stays_done_though_what_waits_for_that_ends_the_process(self, rows, run_all, caplog):
        def act(job, order):
            transaction.on_commit(sys.exit)

        made = rows(None, act, atomic="own")

        with pytest.raises(SystemExit):
            run_all(made)

        assert there(made)[0].state == "completed"
        assert f"called on commit of task {made[0].pk}" in caplog.text

    def test_in_a_test_ends_the_test(self, order, now):
        class Job(Timeline):
            entity = "testapp.Order"
            starts_on = "job.wanted"

            @task(after(days=1))
            def work(self, order):
                sys.exit("enough")

        with only_timelines(Job), StoryClock(now) as clock:
            emit("job.wanted", order)
            with pytest.raises(SystemExit):
                clock.advance(days=1)

        row = ScheduledTask.objects.get()
        assert (row.state, row.failures, row.error.splitlines()[0]) == ("retryable", 1, "SystemExit: enough")


class TestAStep:
    @pytest.mark.parametrize("fails", ["number", "upload"])
    def test_fails_with_its_handler(self, declared, run_at, later, again, fails):
        """What is done before it is not done again."""
        journal = Journal()
        journal.fails, journal.error = [fails], lambda what: SystemExit(journal.fails.pop(0))
        row = declared(invoicing(journal))

        with pytest.raises(SystemExit):
            run_at(row, later)
        row.refresh_from_db()
        ended = (row.state, row.reason_code, row.failures)

        assert again(row).state == "completed"
        assert ended == ("retryable", "error", 1)


class TestACoroutine:
    @pytest.mark.parametrize("kind", ENDS, ids=named)
    @pytest.mark.parametrize("where", ["itself", "beside", "together", "thread"])
    def test_fails_and_the_process_ends_when_the_others_have(self, rows, end, kind, where):
        error = kind("of it all")

        async def fail():
            await asyncio.sleep(0)
            raise error

        def fail_in_a_thread():
            raise error

        async def act(job, order):
            if order.note != "end":
                await asyncio.sleep(0.05)
                return "fine"
            if where == "itself":
                raise error
            if where == "beside":
                return await asyncio.gather(fail(), asyncio.sleep(0.01))
            if where == "thread":
                return await sync_to_async(fail_in_a_thread)()
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
            return None

        first, failed, last = end(rows(error, act, atomic=False), error)

        assert (failed.state, failed.reason_code, failed.failures) == ("retryable", "error", 1)
        assert [row.result for row in (first, last)] == ["fine", "fine"]

    def test_may_be_of_a_guard(self, rows, end):
        error = SystemExit(1)

        def is_over(order):
            if order.note == "end":
                raise error
            return False

        async def act(job, order):
            await asyncio.sleep(0)

        failed = end(rows(error, act, atomic=False, unless=is_over), error)[1]

        assert (failed.state, failed.reason_code, failed.failures) == ("retryable", "error", 1)
