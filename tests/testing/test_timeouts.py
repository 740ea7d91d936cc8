"""``timeout=`` within a test: real seconds, as with a worker, and the transaction of the test stays whole."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import TestCase

from tests.testapp.models import Effect, Order
from timeline import Retry, Timeline, task
from timeline.shortcuts import schedule
from timeline.testing import StoryClock, expect, only_timelines

SHORT = timedelta(milliseconds=100)
LONG = 30.0  # Seconds: what nobody waits for.


class Slow(Timeline):
    """Does what the test has put into ``act``."""

    entity = "testapp.Order"
    act = staticmethod(lambda: None)

    @task(timeout=SHORT, retry=Retry(max_attempts=2, base=timedelta(hours=1), jitter=0))
    def atomic(self, order: Order) -> str:
        Effect.objects.create(name="written")
        if self.task.attempt == 1:
            Slow.act()
        return "well"

    @task(atomic=False, timeout=SHORT, retry=Retry(max_attempts=1))
    def plain(self, order: Order) -> str:
        Effect.objects.create(name="written")
        Slow.act()
        return "well"

    @task(atomic="shared", timeout=SHORT, retry=Retry(max_attempts=1))
    def shared(self, order: Order) -> None:
        Slow.act()

    @task(bulk=10, timeout=SHORT, retry=Retry(max_attempts=1))
    def bulk(self, orders: list[Order]) -> None:
        Slow.act()

    @task(atomic=False, timeout=SHORT, retry=Retry(max_attempts=1))
    async def side_by_side(self, order: Order) -> None:
        if Slow.act is sleep:
            await asyncio.sleep(LONG)


def sleep():
    """Hang."""
    time.sleep(LONG)


def sleep_in_a_query():
    """Hang in the database; on SQLite, which cannot, in a block of a transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_sleep(30)")
        time.sleep(LONG)


def sleep_in_a_query_of_its_own():
    """The same, without a block around it."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_sleep(30)")
        time.sleep(LONG)


def come_back_late():
    """Come back by itself, after an interruption that it catches."""
    try:
        time.sleep(LONG)
    except KeyboardInterrupt:
        return


@pytest.fixture(autouse=True)
def _slow(monkeypatch):
    monkeypatch.setattr(Slow, "act", staticmethod(sleep))
    with only_timelines(Slow):
        yield


class TestTimeout:
    @pytest.mark.parametrize("name", ["plain", "shared", "bulk", "side_by_side"])
    def test_fails_the_attempt_after_so_many_real_seconds(self, order, clock, name):
        row = schedule(f"slow.{name}", order, at=clock.now).task
        since = time.monotonic()

        [ran] = clock.run_due()

        assert 0.1 <= time.monotonic() - since < 10
        assert (ran.pk, ran.state, ran.reason_code) == (row.pk, "discarded", "timeout")
        expect(order).discarded(name, reason="timeout")

    @pytest.mark.parametrize("act", [sleep, sleep_in_a_query, sleep_in_a_query_of_its_own, come_back_late])
    def test_undoes_what_an_atomic_handler_wrote_and_tries_again(self, order, clock, monkeypatch, act):
        monkeypatch.setattr(Slow, "act", staticmethod(act))
        schedule("slow.atomic", order, at=clock.now)

        clock.run_due()
        assert not Effect.objects.exists()
        expect(order).retryable("atomic", at=clock.now + timedelta(hours=1))
        clock.advance(hours=1)

        expect(order).completed("atomic")
        assert Effect.objects.count() == 1

    @pytest.mark.parametrize("act", [sleep, sleep_in_a_query, come_back_late])
    def test_keeps_what_another_handler_wrote(self, order, clock, monkeypatch, act):
        monkeypatch.setattr(Slow, "act", staticmethod(act))
        schedule("slow.plain", order, at=clock.now)

        clock.run_due()

        assert Effect.objects.count() == 1

    def test_leaves_the_transaction_of_the_test_whole_where_a_query_is_broken_off(self, order, clock, monkeypatch):
        monkeypatch.setattr(Slow, "act", staticmethod(sleep_in_a_query_of_its_own))
        schedule("slow.plain", order, at=clock.now)

        clock.run_due()

        expect(order).discarded("plain", reason="timeout")

    def test_tells_where_the_handler_hung(self, order, clock):
        row = schedule("slow.atomic", order, at=clock.now).task

        clock.run_due()

        assert "time.sleep(LONG)" in row.log.latest("seq").detail["error"]["traceback"]

    def test_leaves_alone_who_is_in_time(self, order, clock, monkeypatch):
        monkeypatch.setattr(Slow, "act", staticmethod(lambda: None))
        for name in ("atomic", "plain", "shared", "bulk", "side_by_side"):
            schedule(f"slow.{name}", order, at=clock.now)

        ran = clock.run_due()

        assert {row.state for row in ran} == {"completed"}
        assert not [thread for thread in threading.enumerate() if thread.name == "timeline story clock"]

    @pytest.mark.django_db(transaction=True)
    def test_holds_without_a_transaction_around_the_test(self, clock):
        order = Order.objects.create()
        schedule("slow.atomic", order, at=clock.now)

        clock.run_due()

        assert not Effect.objects.exists()
        expect(order).retryable("atomic")


class TestOnAnotherThread:
    @pytest.mark.django_db(transaction=True)
    def test_fails_the_attempt_once_the_handler_is_back(self, monkeypatch):
        monkeypatch.setattr(Slow, "act", staticmethod(lambda: time.sleep(0.2)))
        order = Order.objects.create()
        states = []

        def live():
            with StoryClock() as clock:
                schedule("slow.atomic", order, at=clock.now)
                states.extend(row.state for row in clock.run_due())
            connection.close()

        thread = threading.Thread(target=live)
        thread.start()
        thread.join()

        assert states == ["retryable"]
        assert not Effect.objects.exists()


class InATestCase(TestCase):
    """The same in Django's own test case."""

    def setUp(self) -> None:
        self.clock = self.enterContext(StoryClock())

    def test_fails_the_attempt(self) -> None:
        order = Order.objects.create()
        schedule("slow.atomic", order, at=self.clock.now)

        self.clock.run_due()

        expect(order).retryable("atomic")
