"""Isolation: who looks at an old snapshot is refused, and what is ours sees what is there."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.backends.postgresql.psycopg_any import IsolationLevel
from django.utils import timezone

from tests.postgresql.races import somebody_waits
from tests.processes import wait_for
from tests.testapp.models import Customer, Order
from timeline import Timeline, after, created, task
from timeline.exceptions import WrongIsolation
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.shortcuts import (
    cancel,
    cancel_all,
    emit,
    emit_many,
    leave,
    move,
    reconcile,
    redrive,
    run_now,
    schedule,
    start,
    start_many,
)
from timeline.signals import work_due
from timeline.testing import only_timelines
from timeline.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)

LEVELS = ["repeatable read", "serializable"]
seen: list[str] = []


class Club(Timeline):
    """Whose members come and go."""

    entity = "testapp.Order"
    starts_on = "order.joined"
    exits = {"order.left": "left"}

    @task(after("ships_at", days=1))
    def greet(self, order: Order) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            seen.append(cursor.fetchone()[0])

    @task(after(days=900), atomic=False)
    def look(self, order: Order) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            seen.append(cursor.fetchone()[0])


class Visit(Timeline):
    """About a model with a parent, whose rows are locked by Django."""

    entity = "testapp.Customer"
    starts_on = created()
    exits = {"order.left": "left"}

    @task(after(days=900))
    def call(self, customer: Customer) -> None: ...


class House(Timeline):
    """About no entity."""

    exits = {"order.left": "left"}

    @task(after(days=900))
    def clean(self) -> None: ...


@pytest.fixture(autouse=True)
def _club():
    seen.clear()
    with only_timelines(Club, Visit, House):
        yield


@pytest.fixture
def member(db):
    """An order with an open run."""
    order = Order.objects.create(ships_at=timezone.now())
    start(Club, order)
    return order


@contextmanager
def options_say(level):
    """The host has it in the settings of its database."""
    options = connection.settings_dict["OPTIONS"]
    connections.close_all()
    options["isolation_level"] = IsolationLevel[level.upper().replace(" ", "_")]
    try:
        yield
    finally:
        del options["isolation_level"]
        connections.close_all()


@contextmanager
def server_says(level):
    """The database has it for whoever connects."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    connections.close_all()
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_isolation")
        connections.close_all()


@contextmanager
def nobody_says(level):
    """The transaction asks for it itself."""
    yield


@pytest.fixture(params=[options_say, server_says, nobody_says])
def whose(request):
    """Where the level of a host's transaction is from."""
    return request.param


@contextmanager
def at_level(whose, level):
    """A transaction of the host's that has read something."""
    with whose(level), transaction.atomic():
        if whose is nobody_says:
            with connection.cursor() as cursor:
                cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level.upper()}")
        Order.objects.count()
        yield


def greeting():
    return ScheduledTask.objects.get(task_key="club.greet")


VERBS = {
    "emit": lambda order: emit("order.left", order),
    "emit that reads": lambda order: emit("order.joined", order),
    "emit of the system": lambda order: emit("order.left", None),
    "emit_many": lambda order: emit_many("order.left", [order]),
    "start": lambda order: start(Club, order, key="again"),
    "start_many": lambda order: start_many(Club, [order], key="again"),
    "start of the system": lambda order: start(House, None),
    "leave": lambda order: leave(Club, order, reason="over"),
    "reconcile": reconcile,
    "cancel": lambda order: cancel(greeting(), reason="over"),
    "cancel_all": lambda order: cancel_all(order, reason="over"),
    "move": lambda order: move(greeting(), at=timezone.now(), reason="later"),
    "run_now": lambda order: run_now(greeting(), reason="now"),
    "redrive": lambda order: redrive(greeting(), reason="again"),
}


class TestAVerb:
    @pytest.mark.parametrize("level", LEVELS)
    @pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
    def test_is_refused_in_a_transaction_that_may_not_see_what_is_there(self, member, whose, level, verb):
        with pytest.raises(WrongIsolation, match=f"{level.upper()}.*READ COMMITTED"), at_level(whose, level):
            verb(member)

        assert not Event.objects.exists()
        assert TimelineRun.objects.get().is_open
        assert set(ScheduledTask.objects.values_list("state", "revision")) == {("scheduled", 1)}

    def test_is_refused_for_a_model_with_parents(self, whose):
        customer = Customer.objects.create()

        with pytest.raises(WrongIsolation), at_level(whose, "serializable"):
            emit("order.left", customer)

        assert TimelineRun.objects.get().is_open

    @pytest.mark.parametrize("level", ["read committed", "read uncommitted"])
    @pytest.mark.parametrize("verb", [VERBS["emit"], VERBS["leave"], VERBS["cancel"]])
    def test_is_taken_in_any_other(self, member, whose, level, verb):
        with at_level(whose, level):
            verb(member)

        assert not ScheduledTask.objects.open().filter(task_key="club.greet").exists()

    @pytest.mark.parametrize("verb", VERBS.keys() - {"redrive", "emit of the system", "start of the system"})
    @pytest.mark.parametrize("whose", [options_say, server_says])
    def test_is_taken_outside_of_transactions(self, member, whose, verb):
        """Its own is READ COMMITTED; the host's afterwards is what the host wants."""
        with whose("serializable"):
            VERBS[verb](member)

            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SHOW transaction_isolation")
                assert cursor.fetchone() == ("serializable",)

    def test_sees_what_was_committed_while_it_waited(self, at_once):
        """An exit that meets a start: the run ends, though the exit asked before there was one."""
        order = Order.objects.create(ships_at=timezone.now())
        begun = threading.Event()

        def begin():
            with transaction.atomic():
                start(Club, order)
                begun.set()
                wait_for(somebody_waits, "the exit")

        def end():
            begun.wait(120)
            emit("order.left", order)

        with options_say("serializable"):
            outcomes = at_once(lambda: begin_at_read_committed(begin), end)

        assert outcomes == [None, None]
        assert TimelineRun.objects.get().end_reason == "left"

    @pytest.mark.parametrize("level", LEVELS)
    def test_keeps_hooks_at_the_level_of_the_host(self, member, level):
        """What is done once it is committed is the host's own."""
        told = []

        def ask(**_extra):
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SHOW transaction_isolation")
                told.append(cursor.fetchone()[0])

        with options_say(level):
            work_due.connect(ask)
            try:
                run_now(greeting(), reason="now")
            finally:
                work_due.disconnect(ask)

        assert told == [level]


def begin_at_read_committed(begin):
    """Begin as another process would, whose settings are other ones."""
    connection.ensure_connection()
    connection.connection.isolation_level = IsolationLevel.READ_COMMITTED
    begin()


class TestASave:
    def test_is_not_refused(self, member, whose):
        """What it could not see, the last look does."""
        later = timezone.now() + timedelta(days=9)

        with at_level(whose, "serializable"):
            Order.objects.filter(pk=member.pk).get()
            member.ships_at = later
            member.save()
            Customer.objects.create()
            schedule("club.look", member, at=later)

        assert greeting().scheduled_at == later + timedelta(days=1)
        assert TimelineRun.objects.filter(timeline="visit").exists()


@pytest.mark.parametrize("level", LEVELS)
class TestAWorker:
    @pytest.mark.parametrize("whose", [options_say, server_says])
    def test_lets_atomic_handlers_see_what_is_there(self, member, whose, level):
        run_now(greeting(), reason="now")

        with whose(level):
            Worker("default").poll()

        assert seen == ["read committed"]

    @pytest.mark.parametrize("whose", [options_say, server_says])
    def test_leaves_transactions_of_plain_handlers_to_the_host(self, member, whose, level):
        run_now(ScheduledTask.objects.get(task_key="club.look"), reason="now")

        with whose(level):
            Worker("default").poll()

        assert seen == [level]
