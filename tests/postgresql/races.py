"""What is raced about: timelines that start and end by events, and what their racers wait for."""

from __future__ import annotations

import threading
from datetime import timedelta

from django.db import connection
from django.utils import timezone

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


def now():
    return story_now("default")


def just_now():
    return timezone.now() - timedelta(seconds=1)


def somebody_waits():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0] > 0
