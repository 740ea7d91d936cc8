"""The page of an entity says of what is ahead whether it would run as things stand."""

from __future__ import annotations

from contextlib import closing, nullcontext, suppress

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from tests.admin.test_entity import page, text_of
from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.admin.guard_answers import standing_of
from timeline.models import ScheduledTask
from timeline.registry import registry
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


def sees_where_it_is(order):
    """Where it is asked; and it leaves another language behind."""
    ASKED.append((timezone.get_current_timezone_name(), translation.get_language()))
    timezone.activate("Asia/Tokyo")
    translation.activate("de")
    return True


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
    said = standing_of(rows, {}, using="default")
    return {row.task_name: said.get(row.pk) for row in rows}


def locks(order):
    return Order.objects.select_for_update().get(pk=order.pk)


def changes_what_it_is_given(order):
    order.paid = True
    return True


def is_paid(order):
    return order.paid


class Careless(Timeline):
    entity = "testapp.Order"

    @task(after(days=1), only_if=changes_what_it_is_given)
    def thank(self, order): ...

    @task(after(days=2), only_if=is_paid)
    def ship(self, order): ...

    @task(after(days=3), only_if=locks)
    def close(self, order): ...


def reads(order):
    return Order.objects.filter(pk=order.pk, paid=False).exists()


def reads_again(order):
    return not Order.objects.filter(pk=order.pk, note="changed by a guard").exists()


def writes(order):
    Order.objects.filter(pk=order.pk).update(note="changed by a guard", paid=True)
    return True


def breaks_it(order):
    with connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


def breaks_it_without_a_word(order):
    with suppress(DatabaseError):
        breaks_it(order)
    return True


def undoes_it(order):
    transaction.set_rollback(True)
    return True


def reads_too(order):
    return reads(order)


def reads_as_well(order):
    return reads(order)


class Several(Timeline):
    """In the order of their keys: what each may do to the next."""

    entity = "testapp.Order"

    @task(after(days=1), only_if=reads)
    def first(self, order): ...

    @task(after(days=2), only_if=reads_again)
    def second(self, order): ...


class Fierce(Timeline):
    """Each followed by one that reads."""

    entity = "testapp.Order"

    @task(after(days=1), only_if=writes)
    def a_writes(self, order): ...

    @task(after(days=2), only_if=reads)
    def b_reads(self, order): ...

    @task(after(days=3), only_if=breaks_it_without_a_word)
    def c_breaks(self, order): ...

    @task(after(days=4), only_if=reads_again)
    def d_reads(self, order): ...

    @task(after(days=5), only_if=breaks_it)
    def e_breaks(self, order): ...

    @task(after(days=6), only_if=reads_too)
    def f_reads(self, order): ...

    @task(after(days=7), only_if=undoes_it)
    def g_undoes(self, order): ...

    @task(after(days=8), only_if=reads_as_well)
    def h_reads(self, order): ...


class Conditions(Timeline):
    entity = "testapp.Order"

    @task(after(days=1), only_if=Q(paid=False))
    def unpaid(self, order): ...

    @task(after(days=2), unless=Q(paid=True), only_if=Q(pk__gt=0))
    def paid(self, order): ...

    @task(after(days=3), only_if=Q(note="x"))
    def note(self, order): ...


class Abroad(Timeline):
    """Whose entity has a zone and a language."""

    entity = "testapp.Order"
    time_zone = "zone"
    language = "language"

    @task(after(days=1), only_if=sees_where_it_is)
    def greet(self, order): ...


class TestStanding:
    def test_says_of_each_what_its_guards_say_now(self, order):
        assert told() == {
            "thank": "as things stand, it would be cancelled: only if (AND: ('paid', True))",
            "remind": "as things stand, it would run: unless has paid",
            "dun": "as things stand, it would run: only if (AND: ('paid', False)), unless has paid",
            "ask": "as things stand, nobody can say whether it runs: only if cannot be asked cannot be asked",
            "close": None,
        }

    def test_follows_what_becomes_true(self, order):
        Order.objects.update(paid=True)

        assert told()["thank"].startswith("as things stand, it would run")
        assert told()["remind"] == "as things stand, it would be cancelled: unless has paid"

    def test_asks_each_guard_once_and_keeps_nothing_that_it_writes(self, order):
        told()

        assert [order.pk] == ASKED
        order.refresh_from_db()
        assert order.note == "as it was"

    def test_takes_a_statement_for_the_entity_and_one_for_each_condition(self, order):
        rows = list(ScheduledTask.objects.filter(task_key__in=["guarded.thank", "guarded.dun"]))
        with CaptureQueriesContext(connection) as queries:
            standing_of(rows, {}, using="default")

        assert sum(query["sql"].startswith("SELECT") for query in queries) <= 4

    def test_asks_in_the_zone_and_language_of_a_worker_and_leaves_those_of_the_page(self, db, clock):
        ASKED.clear()
        with only_timelines(Abroad), timezone.override("America/Lima"), translation.override("de"):
            start(Abroad, Order.objects.create(zone="Asia/Kolkata", language="fr"))
            start(Abroad, Order.objects.create())

            for order in Order.objects.all():
                standing_of(ScheduledTask.objects.filter(entity_id=str(order.pk)), {}, using="default")

            assert sorted(ASKED) == [("Asia/Kolkata", "fr"), (timezone.get_default_timezone_name(), "en")]
            assert (timezone.get_current_timezone_name(), translation.get_language()) == ("America/Lima", "de")

    def test_gives_each_guard_the_entity_as_it_is(self, db, clock):
        with only_timelines(Careless):
            start(Careless, Order.objects.create())

            assert told(task_key="careless.ship")["ship"].startswith("as things stand, it would be cancelled")
            assert told()["ship"].startswith("as things stand, it would be cancelled")

    @pytest.mark.only_postgresql
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("is_in_a_transaction", [False, True])
    def test_waits_for_nobody_who_has_the_entity(self, transactional_db, clock, is_in_a_transaction):
        """And the bounds of that end with it, also in a transaction of the request's."""
        with only_timelines(Careless):
            order = Order.objects.create()
            start(Careless, order)
            other = connection.copy()
            with closing(other), other.cursor() as held:
                held.execute("BEGIN")
                held.execute("SELECT 1 FROM testapp_order WHERE id = %s FOR UPDATE", [order.pk])

                with transaction.atomic() if is_in_a_transaction else nullcontext(), connection.cursor() as cursor:
                    said = told()["close"]
                    cursor.execute("SHOW lock_timeout")
                    assert cursor.fetchone() == ("0",)

        assert said == "as things stand, nobody can say whether it runs: only if locks cannot be asked"

    @pytest.mark.django_db(transaction=True)
    def test_takes_one_transaction_for_all_that_read(self, transactional_db, clock, django_assert_num_queries):
        """Its begin, its bounds where there are any, a statement of each guard's own, and its end."""
        with only_timelines(Several):
            start(Several, Order.objects.create())
            rows = list(ScheduledTask.objects.order_by("task_key"))
            there = {rows[0].entity_ref: Order.objects.get()}

            with django_assert_num_queries(5 if connection.vendor == "postgresql" else 4):
                said = standing_of(rows, there, using="default")

        assert len(said) == 2

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("is_in_a_transaction", [False, True])
    def test_gives_no_guard_what_another_did(self, transactional_db, clock, is_in_a_transaction):
        with only_timelines(Fierce):
            start(Fierce, order := Order.objects.create(note="as it was"))
            rows = list(ScheduledTask.objects.order_by("task_key"))

            with transaction.atomic() if is_in_a_transaction else nullcontext():
                said = standing_of(rows, {}, using="default")
                order.refresh_from_db()

        assert order.note == "as it was"
        told = {row.task_name: said[row.pk] for row in rows}
        assert {name for name, words in told.items() if "cannot be asked" in words} == {"e_breaks"}
        assert {name for name, words in told.items() if "it would run" in words} == told.keys() - {"e_breaks"}

    def test_asks_all_conditions_of_an_entity_at_once(self, db, clock, django_assert_num_queries):
        with only_timelines(Conditions):
            start(Conditions, order := Order.objects.create())
            rows = list(ScheduledTask.objects.order_by("task_key"))

            with CaptureQueriesContext(connection) as queries:
                said = standing_of(rows, {rows[0].entity_ref: order}, using="default")

        assert sum(query["sql"].startswith("SELECT") for query in queries) == 1
        assert ["would run" in said[row.pk] for row in rows] == [False, True, True]

    def test_says_of_a_condition_that_cannot_be_asked_just_that(self, db, clock, monkeypatch):
        with only_timelines(Conditions):
            start(Conditions, order := Order.objects.create())
            broken = registry.timeline("conditions").tasks["note"]
            monkeypatch.setitem(broken.guards, "only_if", Q(no_such_field=1))
            rows = list(ScheduledTask.objects.order_by("task_key"))

            said = standing_of(rows, {rows[0].entity_ref: order}, using="default")

        assert ["cannot be asked" in said[row.pk] for row in rows] == [True, False, False]

    def test_is_on_the_page(self, operator, order):
        text = text_of(page(operator, order))

        assert "as things stand, it would run: unless has paid" in text
