"""Timelines that worker processes of the tests run; the folder to talk through comes from the environment."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

from tests.testapp.models import Effect, Order
from timeline import Retry, Timeline, at, task


class CrashCase(Timeline):
    """Writes an effect, says that it was entered, and waits for leave to go on."""

    entity = "testapp.Order"

    @task()
    def atomic_write(self, order: Order) -> dict[str, bool]:
        return self.write_and_wait()

    @task(atomic=False)
    def plain_write(self, order: Order) -> dict[str, bool]:
        return self.write_and_wait()

    @task(atomic=False)
    def note(self, order: Order) -> None:
        """Write a line to a file, outside any database: each line is one entry of the handler."""
        with (Path(os.environ["TEST_FOLDER"]) / "notes").open("a") as notes:
            notes.write(f"{self.task.pk} {self.lost}\n")
        time.sleep(0.003)

    @task(at("ships_at"), atomic=False)
    def letter(self, order: Order) -> None:
        """The same, in a run: its outcome needs its order."""
        self.note(order)

    @task()
    def fast_atomic(self, order: Order) -> None:
        """Write an effect of its own; of an order that is poison, die."""
        Effect.objects.create(name=str(self.task.pk))
        die_of(order)

    @task(atomic="shared")
    def fast_shared(self, order: Order) -> None:
        """Write an effect of its own; of an order that is poison, die."""
        Effect.objects.create(name=str(self.task.pk))
        die_of(order)

    @task(atomic=False)
    def fast_plain(self, order: Order) -> None:
        """Write a line of its own; of an order that is poison, die."""
        with (Path(os.environ["TEST_FOLDER"]) / "notes").open("a") as notes:
            notes.write(f"{self.task.pk}\n")
        die_of(order)

    @task(atomic=False)
    def brief_plain(self, order: Order) -> None:
        """Write a line of its own, and take a while; of an order that is poison, die."""
        with (Path(os.environ["TEST_FOLDER"]) / "notes").open("a") as notes:
            notes.write(f"{self.task.pk}\n")
        die_of(order)
        time.sleep(0.002)

    @task(atomic=False)
    def hang_plain(self, order: Order) -> None:
        """Take a while; of an order that hangs, come back only when told to."""
        time.sleep(0.001)
        hang_with(order)

    @task()
    def hang_atomic(self, order: Order) -> None:
        """Write an effect of its own; of an order that hangs, come back only when told to."""
        Effect.objects.create(name=str(self.task.pk))
        hang_with(order)

    @task(atomic="own")
    def hang_own(self, order: Order) -> None:
        """Write an effect of its own; of an order that hangs, come back only when told to."""
        Effect.objects.create(name=str(self.task.pk))
        hang_with(order)

    @task(atomic="shared")
    def hang_shared(self, order: Order) -> None:
        """Write an effect of its own; of an order that hangs, come back only when told to."""
        Effect.objects.create(name=str(self.task.pk))
        hang_with(order)

    @task(timeout=timedelta(seconds=3), retry=Retry(base=timedelta(milliseconds=50)))
    def hang_for_a_time(self, order: Order) -> None:
        """Write an effect of its own; of an order that hangs, come back only the second time, or when told to."""
        Effect.objects.create(name=f"{self.task.pk} {self.task.attempt}")
        if self.task.attempt == 1:
            hang_with(order)

    def write_and_wait(self) -> dict[str, bool]:
        folder = Path(os.environ["TEST_FOLDER"])
        Effect.objects.create(name=self.task.task_key)
        (folder / "entered").touch()
        give_up = time.monotonic() + 600
        while not (folder / "go").exists() and time.monotonic() < give_up:
            time.sleep(0.02)
        return {"lost": self.lost}


class PoolCase(Timeline):
    """What Celery's pools differ in: threads, signals, loops; and the end of a process."""

    entity = "testapp.Order"

    @task()
    def atomic(self, order: Order) -> None:
        Effect.objects.create(name=str(self.task.pk))

    @task(atomic="shared")
    def shared(self, order: Order) -> None:
        Effect.objects.create(name=str(self.task.pk))

    @task(atomic=False)
    def plain(self, order: Order) -> None:
        """Write an effect, and wait as for an answer; of an order that leaves, end this process; of one that hangs, wait on."""
        Effect.objects.create(name=str(self.task.pk))
        time.sleep(0.01)
        if order.note == "leave":
            sys.exit(3)
        hang_with(order)

    @task(atomic=False, queue="loop")
    async def coroutine(self, order: Order) -> None:
        """The same."""
        await Effect.objects.acreate(name=str(self.task.pk))
        await asyncio.sleep(0.01)
        if order.note == "leave":
            sys.exit(3)
        if order.note == "hang":
            await asyncio.sleep(600)


class FailCase(Timeline):
    """Fails, as it is told to."""

    entity = "testapp.Order"

    @task(retry=Retry(max_attempts=1))
    def for_good(self, order: Order) -> None:
        raise ValueError("no such address")

    @task(atomic=False, retry=Retry(base=timedelta(milliseconds=1)))
    def once(self, order: Order) -> None:
        if self.task.attempt == 1:
            raise ConnectionError("mail server is away")


def die_of(order: Order) -> None:
    """End this process at once, as a lack of memory does."""
    if order.note == "poison":
        os._exit(9)


def hang_with(order: Order) -> None:
    """Say that it was entered and wait for leave to go on, if the order hangs."""
    if order.note == "hang":
        folder = Path(os.environ["TEST_FOLDER"])
        (folder / "hangs").touch()
        give_up = time.monotonic() + 600
        while not (folder / "go").exists() and time.monotonic() < give_up:
            time.sleep(0.02)
