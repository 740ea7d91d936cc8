"""What is raced about: timelines that start and end by events, and what their racers wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from time import monotonic

from django.db import connection
from django.utils import timezone

from tests.processes import wait_for
from tests.testapp.models import Effect, Order
from timeline import Timeline, after, at, task
from timeline.clocks import story_now

entered = threading.Event()
go_on = threading.Event()


class Race(Timeline):
    """Starts and ends by events; one task waits in its handler until it may go on."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid"}

    @task(at("ships_at"))
    def ship(self, order: Order) -> None:
        Effect.objects.create(name="ship")

    @task(after(ship, days=1))
    def thank(self, order: Order) -> None: ...

    @task()
    def slow(self, order: Order) -> None:
        Effect.objects.create(name="slow")
        entered.set()
        assert go_on.wait(120)

    @task()
    def quick(self, order: Order) -> None:
        Effect.objects.create(name="quick")


class Count(Timeline):
    """Reads nothing of its entity."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid"}

    @task(after(days=1))
    def remind(self, order: Order) -> None: ...


class Sweep(Timeline):
    """Of no entity."""

    starts_on = "sweep.wanted"

    @task(after(days=1))
    def sweep(self) -> None: ...


def rounds(least: int, are_all_seen: Callable[[], bool]) -> Iterator[int]:
    """Number rounds: so many, and more until each way to end has been seen, for two minutes at most."""
    number, give_up = 0, monotonic() + 120
    while number < least or not (are_all_seen() or monotonic() > give_up):
        yield number
        number += 1


def now():
    return story_now("default")


def just_now():
    return timezone.now() - timedelta(seconds=1)


def somebody_waits():
    """Whether somebody waits for a lock in this database; in others of this server, whoever likes may."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_clear_snapshot()"
        )  # A transaction goes on seeing who was connected when it first asked.
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND datname = current_database()"
        )
        return cursor.fetchone()[0] > 0


def wait_for_a_waiter(thread: threading.Thread) -> None:
    """Wait until somebody waits for a lock, or this thread has gone through without."""
    wait_for(lambda: somebody_waits() or not thread.is_alive(), "the waiting for a lock")
