"""Attempts are counted before their handlers are entered; one that must not begin yet looks again later."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import (
    Limit,  # of limits
    Rate,
    RateLimited,
    Retry,
    Timeline,
    after,
    task,
    window,
)
from timeline.clocks import story_time
from timeline.engine.groups import run
from timeline.features.rates.store import slow_down
from timeline.models import RateKey, ScheduledTask
from timeline.shortcuts import emit, explain, hold, run_now, schedule
from timeline.testing import StoryClock, only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
CALLS: list[tuple[str, object]] = []
RAISED: list[Exception] = []


class Paced(Timeline):
    entity = "testapp.Order"

    def note(self, name, order):
        CALLS.append((name, order.pk))
        if RAISED:
            raise RAISED.pop(0)

    @task(rate="3/h")
    def call(self, order):
        self.note("call", order)

    @task(rate=Rate("2/h", by="note"))
    def of_tenant(self, order):
        self.note("of_tenant", order)

    @task(rate=Rate("2/h", key="stripe"), atomic=False, retry=Retry(max_attempts=2))
    def charge(self, order):
        self.note("charge", order)

    @task(rate=Rate("2/h", key="stripe"), atomic=False)
    async def refund(self, order):
        self.note("refund", order)

    @task(rate="2/h", limit=Limit(1, until="end"), atomic=False)  # of limits
    def both(self, order):
        self.note("both", order)

    @task()
    def free(self, order):
        self.note("free", order)


@pytest.fixture(autouse=True)
def known():
    CALLS.clear()
    RAISED.clear()
    with only_timelines(Paced):
        yield


def go(tasks, at):
    """Run them all together at a moment, as a worker does that has found them."""
    with story_time(lambda: at):
        return run(task_ids=[task.pk for task in tasks], clock=lambda: at, using="default")


def states(tasks):
    return list(
        ScheduledTask.objects.filter(pk__in=[task.pk for task in tasks]).by_id().values_list("state", flat=True)
    )


class TestRate:
    def test_lets_so_many_begin_and_puts_the_others_off(self, due, now):
        tasks = due("call", *"abcde")

        go(tasks, now)

        assert len(CALLS) == 3
        assert states(tasks) == ["completed"] * 3 + ["retryable"] * 2
        late = ScheduledTask.objects.get(pk=tasks[4].pk)
        assert now + HOUR <= late.scheduled_at <= now + 2 * HOUR
        assert (late.failures, late.lost, late.reason_code) == (0, 0, "waiting")
        assert late.reason == "the rate of “paced.call”, 3/h, is used up"

    def test_lets_the_others_begin_when_the_period_is_over(self, due, now):
        tasks = due("call", *"abcde")
        go(tasks, now)

        go(tasks[3:], now + HOUR - timedelta(microseconds=1))
        before = len(CALLS)
        ScheduledTask.objects.filter(state="retryable").update(scheduled_at=now)
        go(tasks[3:], now + HOUR)

        assert (before, len(CALLS)) == (3, 5)

    def test_looks_again_by_itself(self, due, now):
        due("call", *"abcdefg")

        with StoryClock(now) as clock:
            clock.run_until(now + HOUR - timedelta(seconds=1))
            first = len(CALLS)
            clock.run_until(now + 2 * HOUR - timedelta(seconds=1))
            second = len(CALLS)
            clock.run_until(now + 9 * HOUR)

        assert (first, second, len(CALLS)) == (3, 6, 7)
        assert len(set(CALLS)) == 7

    def test_looks_again_within_its_window(self, now):
        """At night nobody is called, although the rate would allow it."""

        class Nightly(Timeline):
            entity = "testapp.Order"
            starts_on = "order.placed"

            @task(after(), rate="2/h", window=window("08:30-09:30", zone="UTC"))
            def call(self, order):
                CALLS.append(("call", order.pk))

        with only_timelines(Nightly), StoryClock(now) as clock:
            for _ in range(4):
                emit("order.placed", Order.objects.create())
            clock.run_due()
            said = sorted(ScheduledTask.objects.open().values_list("scheduled_at", flat=True))
            clock.run_until(now + timedelta(days=1))

        opens = now.replace(hour=8, minute=30) + timedelta(days=1)
        assert said[0] == opens
        assert len(CALLS) == 4

    def test_is_for_each_value_of_a_field(self, due, now):
        tasks = due("of_tenant", *"aaabbbc")

        go(tasks, now)

        assert states(tasks).count("completed") == 5
        assert set(RateKey.objects.values_list("key", flat=True)) == {f"paced.of_tenant:{note}" for note in "abc"}

    def test_is_shared_by_kinds_that_name_its_key(self, due, now):
        tasks = due("charge", "a") + due("refund", "a", "b", "c")

        go(tasks[:1], now)
        go(tasks[1:], now)

        assert [name for name, _order in CALLS] == ["charge", "refund"]

    def test_counts_attempts_that_fail(self, due, now):
        RAISED.append(ValueError("no"))
        tasks = due("charge", *"abc")

        for each in tasks:
            go([each], now)

        assert len(CALLS) == 2
        assert states(tasks) == ["retryable", "completed", "retryable"]

    def test_takes_no_place_of_a_limit_while_it_waits(self, due, now):  # of limits
        tasks = due("both", *"abc")

        with StoryClock(now) as clock:
            clock.run_due()

        assert len(CALLS) == 2
        assert not ScheduledTask.objects.filter(slot__gt=0).exists()
        assert sorted(states(tasks)) == ["completed", "completed", "retryable"]

    def test_counts_nothing_that_is_on_hold(self, due, now):
        tasks = due("call", *"abc")
        hold(task="paced.call", reason="no")

        go(tasks, now)

        assert CALLS == []
        assert not RateKey.objects.exclude(starts="[]").exists()

    def test_holds_for_a_task_that_a_person_wants_at_once(self, due, now):
        tasks = due("call", *"abcd")
        go(tasks, now)

        later = now + timedelta(minutes=1)
        with story_time(lambda: later):
            run_now(tasks[3].pk, reason="please")
        go(tasks[3:], later)

        assert len(CALLS) == 3
        assert states(tasks[3:]) == ["retryable"]

    def test_asks_nothing_where_no_task_has_one(self, due, now):
        with CaptureQueriesContext(connection) as asked:
            go(due("free", "a"), now)

        assert not [query for query in asked.captured_queries if "ratekey" in query["sql"]]


class TestRateLimited:
    def test_brakes_all_that_share_the_key(self, due, now):
        tasks = due("charge", "a") + due("refund", "b")
        RAISED.append(RateLimited(90, "429"))

        go(tasks[:1], now)
        go(tasks[1:], now + timedelta(seconds=89))
        before = len(CALLS)
        done = ScheduledTask.objects.get(pk=tasks[0].pk)

        assert before == 1
        assert (done.state, done.reason_code, done.failures, done.error) == ("retryable", "waiting", 0, "")
        assert done.scheduled_at == now + timedelta(seconds=90)
        assert done.reason == "“stripe” is told to wait until 2026-03-01 09:01 UTC"
        assert ScheduledTask.objects.get(pk=tasks[1].pk).scheduled_at >= now + timedelta(seconds=90)
        go(tasks, now + timedelta(seconds=91))
        assert states(tasks) == ["completed", "retryable"]  # The attempt that was refused by the API has counted.

    def test_counts_as_a_failure_when_it_goes_on_for_ever(self, due, now, monkeypatch):
        monkeypatch.setattr("timeline.features.rates.admission.MOST_TIMES", 3)
        [task] = due("charge", "a")
        at, seen = now, []
        for _ in range(5):
            RAISED.append(RateLimited(timedelta(days=1)))
            go([task], at)
            task.refresh_from_db()
            seen.append((task.state, task.failures))
            at += timedelta(days=2)

        assert seen == [*[("retryable", 0)] * 3, ("retryable", 1), ("discarded", 2)]

    def test_is_a_retry_after_for_a_task_without_a_rate(self, due, now):
        [task] = due("free", "a")
        RAISED.append(RateLimited(60))

        go([task], now)
        task.refresh_from_db()

        assert (task.state, task.failures, task.scheduled_at) == ("retryable", 1, now + timedelta(minutes=1))
        assert not RateKey.objects.exists()

    def test_is_recorded_although_its_key_cannot_be_braked(self, due, now, monkeypatch):
        """The database refuses: the outcomes of others of its group are written all the same."""

        def refused(*_given, **_more):
            raise OperationalError("no space")

        monkeypatch.setattr("timeline.features.rates.admission.slow_down", refused)
        tasks = due("refund", *"ab")
        RAISED.append(RateLimited(90))

        go(tasks, now)

        assert sorted(states(tasks)) == ["completed", "retryable"]
        waits = ScheduledTask.objects.get(state="retryable")
        assert (waits.failures, waits.scheduled_at) == (0, now + timedelta(seconds=90))

    def test_brakes_the_key_that_was_counted(self, now):
        """The handler has changed the field since."""

        class Changing(Timeline):
            entity = "testapp.Order"

            @task(rate=Rate("2/h", by="note"), atomic=False)
            def call(self, order):
                order.note = "after"
                raise RateLimited(60)

        with only_timelines(Changing):
            go([schedule("changing.call", Order.objects.create(note="before"), at=now).task], now)

        assert RateKey.objects.get().key == "changing.call:before"

    @pytest.mark.parametrize("wrong", [-1, timedelta(days=32), "soon", None, float("nan"), float("inf")])
    def test_refuses_what_is_no_time(self, wrong):
        with pytest.raises(ValueError, match="give a timedelta or seconds, from 0 to 31 days"):
            RateLimited(wrong)

    def test_stays_braked_if_told_a_shorter_time_afterwards(self, due, now):
        with story_time(lambda: now):
            slow_down("stripe", until=now + HOUR, now=now, using="default")
            slow_down("stripe", until=now + timedelta(minutes=1), now=now, using="default")
        tasks = due("refund", "a")

        go(tasks, now + timedelta(minutes=2))

        assert CALLS == []


class TestExplain:
    def test_says_of_a_task_that_waits_why_and_until_when(self, due, now):
        tasks = due("call", *"abcd")
        go(tasks, now)

        with story_time(lambda: now):
            said = str(explain(tasks[3].pk))

        assert "the rate of “paced.call”, 3/h, is used up.\nIt rests until 2026-03-01 10:00 UTC." in said
