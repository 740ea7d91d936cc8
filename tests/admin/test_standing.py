"""The page of an entity says of what is ahead whether it would run as things stand."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from tests.admin.test_entity import page, text_of
from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.admin.standing import standing_of
from timeline.models import ScheduledTask
from timeline.shortcuts import start
from timeline.testing import only_timelines

ASKED = []


def has_paid(order):
    ASKED.append(order.pk)
    order.note = "changed by a guard"
    order.save()
    return order.paid


def cannot_be_asked(order):
    raise ZeroDivisionError


class Guarded(Timeline):
    entity = "testapp.Order"

    @task(after(days=1), only_if=Q(paid=True))
    def thank(self, order): ...

    @task(after(days=2), unless=has_paid)
    def remind(self, order): ...

    @task(after(days=3), unless=has_paid, only_if=Q(paid=False))
    def dun(self, order): ...

    @task(after(days=4), only_if=cannot_be_asked)
    def ask(self, order): ...

    @task(after(days=5))
    def close(self, order): ...


@pytest.fixture
def order(db, clock):
    ASKED.clear()
    with only_timelines(Guarded):
        order = Order.objects.create(note="as it was")
        start(Guarded, order)
        yield order


def told(**more):
    rows = ScheduledTask.objects.filter(**more)
    said = standing_of(rows, using="default")
    return {row.task_name: said.get(row.pk) for row in rows}


class TestStanding:
    def test_says_of_each_what_its_guards_say_now(self, order):
        assert told() == {
            "thank": "as things stand, it would be cancelled: only_if (AND: ('paid', True))",
            "remind": "as things stand, it would run: unless has_paid",
            "dun": "as things stand, it would run: only_if (AND: ('paid', False)), unless has_paid",
            "ask": "as things stand, nobody can say whether it runs: only_if cannot_be_asked cannot be asked",
            "close": None,
        }

    def test_follows_what_becomes_true(self, order):
        Order.objects.update(paid=True)

        assert told()["thank"].startswith("as things stand, it would run")
        assert told()["remind"] == "as things stand, it would be cancelled: unless has_paid"

    def test_asks_each_guard_once_and_keeps_nothing_that_it_writes(self, order):
        told()

        assert [order.pk] == ASKED
        order.refresh_from_db()
        assert order.note == "as it was"

    def test_takes_a_statement_for_the_entity_and_one_for_each_condition(self, order):
        rows = list(ScheduledTask.objects.filter(task_key__in=["guarded.thank", "guarded.dun"]))
        with CaptureQueriesContext(connection) as queries:
            standing_of(rows, using="default")

        assert sum(query["sql"].startswith("SELECT") for query in queries) <= 4

    def test_is_on_the_page(self, operator, order):
        text = text_of(page(operator, order))

        assert "as things stand, it would run: unless has_paid" in text
