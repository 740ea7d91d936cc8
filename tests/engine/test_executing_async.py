"""Execute side by side: async handlers wait for the outside together, and each has its own outcome."""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.utils import timezone, translation

from tests.testapp.models import Effect, Order
from timeline import Cancel, Discard, RetryAfter
from timeline.definition.handlers import SIDE_BY_SIDE
from timeline.engine.groups import Watch
from timeline.engine.precheck import pass_fresh_look
from timeline.models import ScheduledTask
from timeline.shortcuts import acancel, aemit, cancel

# The handlers' statements come from another task of the loop, on the same thread: so from the same connection.
pytestmark = pytest.mark.django_db(transaction=True)


def ends(rows):
    return [(row.state, row.reason_code, row.failures) for row in rows]


class TestSideBySide:
    def test_wait_for_each_other(self, crowd, run_all):
        """None of them gets on before all have been entered, so they must be under way at the same time."""
        barrier = []

        async def handler(job, order):
            if not barrier:
                barrier.append(asyncio.Barrier(3))
            return await barrier[0].wait() >= 0

        done = run_all(crowd(3, handler, atomic=False))

        assert [row.result for row in done] == [True] * 3

    def test_are_so_many_at_most(self, crowd, run_all):
        under_way, most = [], []

        async def handler(job, order):
            under_way.append(order)
            most.append(len(under_way))
            await asyncio.sleep(0)
            under_way.remove(order)

        done = run_all(crowd(SIDE_BY_SIDE + 5, handler, atomic=False))

        assert {row.state for row in done} == {"completed"}
        assert 1 < max(most) <= SIDE_BY_SIDE

    def test_have_what_ended_recorded_while_others_wait(self, crowd, run_all):
        """A slow one does not hold up the outcomes of the others."""

        async def handler(job, order):
            others = ScheduledTask.objects.filter(task_key="crowd.work").exclude(pk=job.task.pk)
            while order.note == "slow" and await others.filter(state="active").aexists():
                await asyncio.sleep(0.01)
            return [state async for state in others.values_list("state", flat=True)]

        rows = crowd(3, handler, atomic=False)
        Order.objects.filter(pk=rows[0].entity_id).update(note="slow")

        done = run_all(rows)

        assert done[0].result == ["completed"] * 2

    @pytest.mark.usefixtures("patient")
    def test_make_as_many_statements_for_100_as_for_10(self, crowd, run_all, statements_of, monkeypatch):
        monkeypatch.setattr("timeline.engine.execute_async.BUDGET", timedelta(seconds=5))

        async def handler(job, order):
            return None

        asked = []
        for count in (10, 100):
            rows = crowd(count, handler, atomic=False)
            asked.append(statements_of(lambda rows=rows: run_all(rows)))

        assert asked[0] == asked[1]


class TestTheDatabase:
    def test_is_the_one_the_worker_has(self, crowd, run_all):
        async def handler(job, order):
            await Order.objects.filter(pk=order.pk).aupdate(note="seen")
            await order.arefresh_from_db()
            held = await sync_to_async(lambda: connection.in_atomic_block)()
            return [order.note, (await Order.objects.aget(pk=order.pk)).pk, held]

        rows = crowd(2, handler, atomic=False)

        assert [row.result for row in run_all(rows)] == [["seen", int(row.entity_id), False] for row in rows]

    def test_keeps_what_a_handler_wrote_that_failed(self, crowd, run_all):
        async def handler(job, order):
            await Effect.objects.acreate(name="wrote")
            raise ValueError("boom")

        run_all(crowd(2, handler, atomic=False))

        assert Effect.objects.count() == 2

    def test_takes_what_a_handler_says(self, crowd, run_all):
        """An exit of its own run spares the task that is being run, and no other's."""

        async def handler(job, order):
            await aemit("order.closed", order)
            return "closed it"

        done = run_all(crowd(2, handler, atomic=False))

        assert [(row.state, row.result) for row in done] == [("completed", "closed it")] * 2
        assert {row.run.end_reason for row in done} == {"closed"}

    @pytest.mark.only_postgresql  # The connection is one that can be lost.
    def test_that_was_lost_is_nobodys_fault(self, crowd, run_all):
        async def handler(job, order):
            if order.note == "cut":
                await sync_to_async(cut)()
            await order.arefresh_from_db()

        rows = crowd(2, handler, atomic=False)
        Order.objects.filter(pk=rows[0].entity_id).update(note="cut")

        done = run_all(rows)

        assert ends(done)[0] == ("retryable", "error", 0)
        assert {row.failures for row in done} == {0}


class TestWhatAHandlerRaises:
    @pytest.mark.parametrize(
        ("error", "end"),
        [
            (ValueError("boom"), ("retryable", "error", 1)),
            (Cancel("not wanted"), ("cancelled", "handler", 0)),
            (Discard("no such address"), ("discarded", "handler", 1)),
            (RetryAfter(timedelta(minutes=7)), ("retryable", "retry_after", 1)),
            (TimeoutError(), ("retryable", "error", 1)),
            (asyncio.CancelledError(), ("retryable", "error", 1)),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_is_its_own_outcome_and_no_neighbours(self, crowd, run_all, error, end):
        async def handler(job, order):
            if order.note == "raise":
                raise error
            await asyncio.sleep(0)

        rows = crowd(3, handler, atomic=False)
        Order.objects.filter(pk=rows[1].entity_id).update(note="raise")

        done = run_all(rows)

        assert ends(done) == [("completed", "done", 0), end, ("completed", "done", 0)]

    def test_may_be_that_its_own_time_is_up(self, crowd, run_all):
        async def handler(job, order):
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()

        [done] = run_all(crowd(1, handler, atomic=False))

        assert (done.state, done.failures) == ("retryable", 1)
        assert "TimeoutError" in done.error

    def test_says_of_one_cancelled_from_within_what_it_was(self, crowd, run_all):
        async def handler(job, order):
            asyncio.current_task().cancel()
            await asyncio.sleep(1)

        [done] = run_all(crowd(1, handler, atomic=False))

        assert done.reason == "the handler was cancelled from within"

    def test_may_be_a_result_that_is_not_plain(self, crowd, run_all):
        async def handler(job, order):
            return {1, 2}

        assert ends(run_all(crowd(1, handler, atomic=False))) == [("retryable", "error", 1)]


class TestWhatItReads:
    def test_is_its_own_through_every_wait(self, crowd, run_all):
        """Context, language and zone are of this entity, though others are under way on the same thread."""
        barrier = []

        async def handler(job, order):
            if not barrier:
                barrier.append(asyncio.Barrier(2))
            await barrier[0].wait()
            await order.arefresh_from_db()
            told = [translation.get_language(), timezone.get_current_timezone_name()]
            return [*told, str(job.idempotency_key), str(job.task.pk), str(job.run.pk), job.lost]

        rows = crowd(2, handler, atomic=False)
        Order.objects.filter(pk=rows[0].entity_id).update(language="de", zone="Asia/Tokyo")

        done = run_all(rows)

        told = [[str(row.pk), str(row.pk), str(row.run_id), False] for row in rows]
        assert [row.result for row in done] == [["de", "Asia/Tokyo", *told[0]], ["en", "UTC", *told[1]]]
        assert (translation.get_language(), timezone.get_current_timezone_name()) == ("en", "UTC")

    def test_has_the_same_key_when_it_is_tried_again(self, crowd, run_all, later):
        seen = []

        async def handler(job, order):
            seen.append(job.idempotency_key)
            if job.task.attempt == 1:
                raise ValueError("boom")

        rows = crowd(1, handler, atomic=False)
        run_all(rows)
        ScheduledTask.objects.filter(pk=rows[0].pk).update(scheduled_at=later)
        [done] = run_all(rows)

        assert (done.state, seen) == ("completed", [rows[0].pk] * 2)


class TestTheLastLook:
    @pytest.mark.parametrize("option", ["only_if", "unless"])
    def test_asks_the_guards(self, crowd, run_all, option):
        entered = []

        async def handler(job, order):
            entered.append(order.paid)

        rows = crowd(2, handler, atomic=False, **{option: is_paid})
        Order.objects.filter(pk=rows[0].entity_id).update(paid=True)

        done = run_all(rows)

        assert entered == [option == "only_if"]
        assert sorted(row.reason_code for row in done) == ["done", "guard"]

    @pytest.mark.usefixtures("hasty")
    def test_is_taken_anew_before_what_has_waited_is_entered(self, crowd, run_all):
        """Their time is up once the first is entered: it calls the others off, and none of them is."""
        entered = []

        def call_off():
            for row in rows[1:]:
                cancel(row, reason="not this one")

        async def handler(job, order):
            entered.append(job.task.pk)
            await sync_to_async(call_off)()

        rows = crowd(4, handler, atomic=False)

        done = run_all(rows)

        assert entered == [rows[0].pk]
        assert [row.state for row in done] == ["completed"] + ["cancelled"] * 3

    @pytest.mark.usefixtures("hasty")
    def test_is_taken_anew_after_guards_that_take_long(self, crowd, run_all):
        """The first guard takes all the time there is, and somebody ends the others' runs in it."""
        asked, entered = [], []

        def guard(order):
            asked.append(order.pk)
            for row in rows:
                if row.entity_id != str(order.pk) and row.pk not in entered:
                    cancel(row, reason="not this one")
            return True

        async def handler(job, order):
            entered.append(job.task.pk)

        rows = crowd(3, handler, atomic=False, only_if=guard)

        done = run_all(rows)

        assert (len(asked), entered) == (1, [rows[0].pk])
        assert [row.state for row in done] == ["completed", "cancelled", "cancelled"]

    @pytest.mark.usefixtures("hasty")
    def test_is_taken_anew_for_all_that_wait_together(self, crowd, run_all, statements_of, monkeypatch):
        """Not a look for each: of ten that wait as of a hundred, all are looked at in the same statements."""
        monkeypatch.setattr("timeline.engine.execute_async.SIDE_BY_SIDE", 1000)
        go = []

        async def handler(job, order):
            while not go:
                await asyncio.sleep(0.01)

        def run_them(count):
            rows = crowd(count, handler, atomic=False)
            go.clear()
            monkeypatch.setattr("timeline.engine.execute.BUDGET", timedelta(0))

            def look(attempts, setting, *, late):
                looked.append(len(attempts))
                if len(looked) > 1:
                    monkeypatch.setattr("timeline.engine.execute.BUDGET", timedelta(hours=1))
                    go.append(1)
                return pass_fresh_look(attempts, setting, late=late)

            looked = []
            monkeypatch.setattr("timeline.engine.execute_async.pass_fresh_look", look)
            run_all(rows)
            return looked

        assert run_them(10)[1:] == [9]
        assert run_them(100)[1:] == [99]

    def test_in_shadow_enters_nothing(self, crowd, run_all):
        async def handler(job, order):
            raise AssertionError

        done = run_all(crowd(2, handler, atomic=False, declared={"shadow": True}))

        assert ends(done) == [("completed", "shadow", 0)] * 2


class TestAnAttemptThatIsNoLongerOurs:
    def test_is_left_and_its_neighbours_are_recorded(self, crowd, run_all, caplog):
        async def handler(job, order):
            if job.task.pk == rows[0].pk:
                await asyncio.wait_for(cancelled.wait(), 20)
            else:
                await acancel(rows[0], reason="asked for", actor="ada")
                cancelled.set()

        rows, cancelled = crowd(2, handler, atomic=False), asyncio.Event()

        done = run_all(rows)

        assert ends(done) == [("cancelled", "operator", 0), ("completed", "done", 0)]
        assert str(rows[0].pk) in caplog.text


class TestAWorkerThatStops:
    class Told(Watch):
        """Stops once so many were entered."""

        def __init__(self, entered, after):
            self.entered_now, self.after = entered, after

        def stopping(self):
            return len(self.entered_now) >= self.after

    def test_finishes_what_was_entered_and_gives_back_the_rest(self, crowd, run_all):
        entered = []

        async def handler(job, order):
            entered.append(order.pk)
            await asyncio.sleep(0.01)

        rows = crowd(SIDE_BY_SIDE + 20, handler, atomic=False)

        done = run_all(rows, watch=self.Told(entered, after=1))

        finished = [row for row in done if int(row.entity_id) in entered]
        given_back = [row for row in done if int(row.entity_id) not in entered]
        assert (
            1 <= len(finished) <= SIDE_BY_SIDE
        )  # On a busy machine some have waited too long to be entered beside the first.
        assert ends(finished) == [("completed", "done", 0)] * len(entered)
        assert ends(given_back) == [("retryable", "released", 0)] * (len(rows) - len(entered))
        assert {row.lost for row in done} == {0}


def cut():
    """Lose the connection, as a network does."""
    connection.connection.close()


def is_paid(order):
    return order.paid
