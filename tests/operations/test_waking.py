"""Wake what waits for an event: only that, and many at once."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.databases import VENDOR
from tests.testapp.models import Order
from timeline.features.waits.wake import wake
from timeline.lifecycle import State
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import emit_many

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(make_task, now):
    """A row at rest that waits for an event of an order."""

    def make(order, awaits="otp.given", **given):
        return make_task(**waits(now, order, awaits) | given)

    return make


def waits(now, order, awaits="otp.given"):
    """What is in the columns of such a row."""
    return {
        "state": State.RETRYABLE,
        "attempt": 1,
        "reason_code": "waiting",
        "scheduled_at": now + timedelta(days=3650),
        "awaits": awaits,
        "awaits_label": "testapp.order",
        "awaits_id": str(order.pk),
    }


def states():
    return set(ScheduledTask.objects.values_list("state", flat=True))


class TestWake:
    def test_makes_due_now_what_waits_and_says_why(self, waiting, order, now, emit_at):
        row = waiting(order)

        emit_at("otp.given", order, now)

        row.refresh_from_db()
        assert (row.state, row.scheduled_at, row.reason) == (State.AVAILABLE, now, "otp.given came")
        assert LogEntry.objects.get().detail["said"] == {"sentence": "came", "event": "otp.given"}

    def test_leaves_due_times_that_have_passed(self, waiting, order, now, emit_at):
        row = waiting(order, scheduled_at=now - timedelta(days=1))

        emit_at("otp.given", order, now)

        row.refresh_from_db()
        assert row.scheduled_at == now - timedelta(days=1)

    @pytest.mark.parametrize("state", sorted(set(State) - {State.SCHEDULED, State.RETRYABLE}))
    def test_leaves_what_is_not_at_rest(self, waiting, order, now, emit_at, state):
        held = {"lease_expires_at": now} if state in ("pending", "active") else {}
        ended = {"finished_at": now} if state in ("completed", "cancelled", "discarded") else {}
        waiting(order, state=state, **held, **ended)

        emit_at("otp.given", order, now)

        assert states() == {state}

    @pytest.mark.parametrize("awaits", ["otp", "otp.given.twice", "not.otp.given", ""])
    def test_leaves_what_waits_for_another(self, waiting, order, now, emit_at, awaits):
        waiting(order, awaits)

        emit_at("otp.given", order, now)

        assert states() == {State.RETRYABLE}

    def test_wakes_nobody_by_an_event_that_was_recorded_before(self, waiting, order, now, emit_at):
        emit_at("otp.given", order, now, key="1")
        waiting(order)

        emit_at("otp.given", order, now, key="1")

        assert states() == {State.RETRYABLE}

    def test_of_none_asks_nothing(self, now, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert wake("otp.given", "", [], now=now, using="default") == 0


class TestMany:
    def orders(self, count, now):
        return Order.objects.bulk_create([Order(ships_at=now) for _ in range(count)])

    @pytest.mark.parametrize("key", ["", "k"])
    def test_are_waked_and_nobody_else(self, waiting, now, key):
        orders = self.orders(30, now)
        rows = [waiting(order) for order in orders[:20]]

        emit_many("otp.given", orders[10:], key=key)

        woken = ScheduledTask.objects.filter(state=State.AVAILABLE).values_list("pk", flat=True)
        assert set(woken) == {row.pk for row in rows[10:]}

    @pytest.mark.parametrize(("many", "few"), [(30, 10), (1000, 800)])
    def test_take_as_many_statements_as_few(self, waiting, now, statements_of, many, few):
        def asked(count):
            orders = self.orders(count, now)
            for order in orders[:: count // 10]:
                waiting(order)
            return statements_of(lambda: emit_many("otp.given", orders))

        assert asked(many) == asked(few)

    def test_are_waked_by_one_statement_and_one_for_tasks_of_others(self, make_tasks, now):
        """On SQLite one finds them, one changes them, one logs it."""
        orders = self.orders(1000, now)

        def asked():
            with CaptureQueriesContext(connection) as made:
                emit_many("otp.given", orders)
            return len(made)

        before = asked()
        make_tasks(waits(now, order) for order in orders)

        assert asked() - before == (2 if VENDOR == "postgresql" else 4)


class TestHowItIsAsked:
    def test_goes_by_the_index_of_those_who_wait(self, waiting, make_tasks, order, now, emit_at):
        """Beside 500 tasks of other entities that wait for nothing, of which the planner knows."""
        make_tasks({"entity_label": "testapp.order", "entity_id": str(number)} for number in range(10**9, 10**9 + 500))
        waiting(order)
        with CaptureQueriesContext(connection) as made:
            emit_at("otp.given", order, now)

        asked = [
            query["sql"] for query in made if "awaits" in query["sql"] and re.match("INSERT|WITH|SELECT", query["sql"])
        ]
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE timeline_scheduledtask")
            for sql in asked[:2]:
                cursor.execute(f"{'EXPLAIN' if VENDOR == 'postgresql' else 'EXPLAIN QUERY PLAN'} {sql}")
                plan = str(cursor.fetchall())
                assert "timeline_task_awaited" in plan, (sql, plan)
        assert len(asked) >= 2
