"""Outcomes that cannot be written yet: each mail is sent once, and nobody else waits for it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from tests.processes import wait_for
from tests.testapp.models import Order
from timeline import Timeline, at, task
from timeline.clocks import MachineTime, story_now
from timeline.dispatch.rescue import rescue
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import cancel, start
from timeline.testing import only_timelines
from timeline.worker import Worker, outcome_keeper

pytestmark = pytest.mark.django_db(transaction=True)

sent: list[str] = []
gates: dict[str, tuple[threading.Event, threading.Event]] = {}  # Of an order: its handler is entered; and may go on.


class Mails(Timeline):
    """Sends, and says so outside the database."""

    entity = "testapp.Order"

    @task(at("ships_at"), atomic=False)
    def send(self, order: Order) -> str:
        sent.append(str(order.pk))
        if gate := gates.get(str(order.pk)):
            gate[0].set()
            assert gate[1].wait(120)
        return "sent"

    @task(at("due_on"), bulk=100, atomic=False)
    def send_all(self, orders: list[Order]) -> None:
        sent.extend(str(order.pk) for order in orders)


@pytest.fixture(autouse=True)
def _mails(db, settings):
    sent.clear()
    gates.clear()
    settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=50)}
    with only_timelines(Mails):
        yield


@pytest.fixture
def working():
    """Have workers at work, each on a thread: ``working(threads=2)``. They are told to stop at the end."""
    started = []

    def work(threads=1):
        def until_stopped():
            try:
                worker.work()
            finally:
                connections.close_all()

        worker = Worker("default", threads=threads)
        thread = threading.Thread(target=until_stopped)
        started.append((worker, thread))
        thread.start()
        return worker, thread

    yield work
    for worker, thread in started:
        worker.stop()
        thread.join(120)


@pytest.fixture
def host_sets():
    """Let each connection made within have a setting of the host's: ``with host_sets("lock_timeout", "10ms")``."""

    @contextmanager
    def setting(name, value):
        database = connection.ops.quote_name(connection.settings_dict["NAME"])
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {database} SET {name} = '{value}'")
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute(f"ALTER DATABASE {database} RESET {name}")

    return setting


def orders(count, **columns):
    columns = columns or {"ships_at": timezone.now() - timedelta(seconds=1)}
    made = Order.objects.bulk_create([Order(**columns) for _ in range(count)])
    for order in made:
        start(Mails, order)
    return made


@contextmanager
def held(rows):
    """Hold rows in a transaction of the host's."""
    with transaction.atomic():
        list(rows.select_for_update(of=("self",)))
        yield


@contextmanager
def held_once_entered(order, rows, begin):
    """Hold rows from within the handler of an order on, once its attempt was begun by this."""
    entered, go_on = gates[str(order.pk)] = threading.Event(), threading.Event()
    begin()
    assert entered.wait(120)
    with held(rows):
        go_on.set()
        yield


def of(order, name="send"):
    return ScheduledTask.objects.get(entity_id=str(order.pk), task_key=f"mails.{name}")


def has_outlived(lease):
    """Whether a lease would have run out by now, by the clock that leases go by."""
    return lambda: ScheduledTask.objects.annotate(now=MachineTime()).filter(now__gt=lease).exists()


def are_completed(made):
    done = ScheduledTask.objects.filter(state="completed", entity_id__in=[str(order.pk) for order in made])
    return done.count() == len(made)


def each_was_sent_once(*made):
    return Counter(sent) == {str(order.pk): 1 for order in made} and not LogEntry.objects.filter(
        from_state="active", task__task_key="mails.send"
    ).exclude(to_state="completed")


class TestWhatSomebodyHolds:
    @pytest.mark.parametrize("threads", [1, 2])
    @pytest.mark.parametrize("what", ["entity", "run", "task"])
    def test_holds_up_no_task_but_its_own(self, working, at_once, threads, what):
        """Neither its neighbours in the group nor what is due later."""
        first, *others = orders(4)
        rows = {
            "entity": Order.objects.filter(pk=first.pk),
            "run": TimelineRun.objects.filter(entity_id=str(first.pk)),
            "task": ScheduledTask.objects.filter(entity_id=str(first.pk)),
        }[what]

        with held_once_entered(first, rows, lambda: working(threads)):
            wait_for(lambda: are_completed(others), "the neighbours' outcomes")
            [later] = at_once(lambda: orders(3))
            wait_for(lambda: are_completed(later), "what was due later")
            assert of(first).state == "active"

        wait_for(lambda: are_completed([first]), "the outcome that was held up")
        assert each_was_sent_once(first, *others, *later)

    def test_costs_no_lease(self, working, settings, caplog):
        """It is held for longer than a lease, and somebody looks for leases that ran out."""
        settings.TIMELINE |= {"LEASE": timedelta(seconds=6)}
        [order] = orders(1)

        with held(Order.objects.filter(pk=order.pk)):
            working()
            wait_for(lambda: "is kept until" in caplog.text, "that the outcome is kept")
            wait_for(has_outlived(of(order).lease_expires_at), "the end of its first lease")
            rescued = rescue(now=story_now("default"), using="default")

        wait_for(lambda: are_completed([order]), "the outcome")
        assert not any(rescued)
        assert each_was_sent_once(order)

    def test_does_not_make_a_call_for_many_again(self, working, caplog):
        made = orders(3, due_on=timezone.now().date())

        with held(Order.objects.filter(pk=made[1].pk)):
            working()
            wait_for(lambda: "is kept until" in caplog.text, "that an outcome is kept")

        wait_for(lambda: of(made[1], "send_all").state == "completed", "the outcome")
        assert Counter(sent) == {str(order.pk): 1 for order in made}


class TestATaskThatIsCalledOff:
    def test_ends_so_and_its_outcome_is_let_go(self, working, caplog):
        """Whoever held it up did so."""
        [order] = orders(1)

        with held(Order.objects.filter(pk=order.pk)):
            worker, thread = working()
            wait_for(lambda: "is kept until" in caplog.text, "that the outcome is kept")
            cancel([of(order)], reason="not wanted")
        wait_for(lambda: "not ours any more" in caplog.text, "that the attempt is given up")
        worker.stop()
        thread.join(120)

        assert (of(order).state, len(sent)) == ("cancelled", 1)
        assert "will run again" not in caplog.text


class TestAHostThatIsImpatient:
    def test_has_no_mail_sent_again_for_a_lock(self, working, host_sets, caplog):
        made = orders(3)

        with host_sets("lock_timeout", "10ms"), held(Order.objects.filter(pk=made[0].pk)):
            working()
            wait_for(lambda: are_completed(made[1:]), "the neighbours' outcomes")
            wait_for(lambda: "is kept until" in caplog.text, "that the outcome is kept")
            time.sleep(0.5)  # A few tries.

        wait_for(lambda: are_completed(made), "all outcomes")
        assert each_was_sent_once(*made)

    def test_has_no_success_counted_as_a_failure_for_the_time_it_takes_to_write_it(self, working, host_sets, caplog):
        [order] = orders(1)

        with host_sets("statement_timeout", "1s"), slow_to_write(seconds=2):
            working()
            wait_for(lambda: "is kept until" in caplog.text or of(order).failures, "that writing it was cancelled")

        wait_for(lambda: are_completed([order]), "the outcome")
        assert each_was_sent_once(order)

    def test_has_no_mail_sent_again_where_connections_are_cut(self, working, caplog):
        [order] = orders(1)

        def is_kept_once_its_connection_is_cut():
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
                    " AND datname = current_database()"
                )
            return "is kept until" in caplog.text

        with slow_to_write(seconds=2):
            working()
            wait_for(is_kept_once_its_connection_is_cut, "that the outcome is kept")

        wait_for(lambda: are_completed([order]), "the outcome")
        assert each_was_sent_once(order)

    @pytest.mark.parametrize("level", ["repeatable read", "serializable"])
    def test_has_each_mail_sent_once_where_transactions_of_the_host_cannot_be_serialized(
        self, working, host_sets, level
    ):
        made, over = orders(30), threading.Event()

        def write_all_the_time():
            with connections["default"].cursor() as cursor:
                while not over.is_set():
                    cursor.execute("UPDATE testapp_order SET note = note || '' WHERE pg_sleep(0.001) IS NOT NULL")
            connections.close_all()

        writer = threading.Thread(target=write_all_the_time)
        with host_sets("default_transaction_isolation", level):
            writer.start()
            try:
                working()
                wait_for(lambda: are_completed(made), "all outcomes")
            finally:
                over.set()
                writer.join(120)

        assert each_was_sent_once(*made)


class TestTooMany:
    def test_are_not_kept_and_no_further_mail_is_sent(self, working, monkeypatch, caplog):
        monkeypatch.setattr(outcome_keeper, "MAX_KEPT", 2)
        made = orders(10)

        with held(Order.objects.filter(pk__in=[order.pk for order in made])):
            working()
            wait_for(lambda: "No plain handler is entered" in caplog.text, "that there is no room")
            time.sleep(0.3)
            before = len(sent)

        wait_for(lambda: are_completed(made), "all outcomes")
        assert before <= 4
        assert each_was_sent_once(*made)


class TestAWorkerThatIsToldToStop:
    def test_writes_what_it_still_has_if_it_can(self, working, caplog):
        [order] = orders(1)

        with held(Order.objects.filter(pk=order.pk)):
            worker, thread = working()
            wait_for(lambda: "is kept until" in caplog.text, "that the outcome is kept")
            worker.stop()
        thread.join(120)

        assert each_was_sent_once(order)
        assert of(order).state == "completed"

    def test_says_what_it_leaves(self, working, monkeypatch, caplog):
        monkeypatch.setattr(outcome_keeper, "LAST_TRIES", 0.2)
        [order] = orders(1)

        with held(Order.objects.filter(pk=order.pk)):
            worker, thread = working()
            wait_for(lambda: "is kept until" in caplog.text, "that the outcome is kept")
            worker.stop()
            thread.join(120)
            assert not thread.is_alive()

        assert of(order).state == "active"
        [told] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert str(of(order).pk) in told


@contextmanager
def slow_to_write(seconds):
    """Let it take so long to write that a task has completed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql "
            f"AS 'BEGIN PERFORM pg_sleep({seconds}); RETURN NEW; END'"
        )
        cursor.execute(
            "CREATE TRIGGER slow BEFORE UPDATE ON timeline_scheduledtask "
            "FOR EACH ROW WHEN (NEW.state = 'completed') EXECUTE FUNCTION slow()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION slow CASCADE")
