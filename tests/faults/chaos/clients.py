"""
``python -m tests.faults.chaos.clients``: people and services who schedule, start, cancel, move, leave and redrive.

They write down what they ask, and when the answer came; where none came, they ask again by the same key, as one should.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import django

django.setup()

from django.db import DatabaseError, InterfaceError, connection, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from tests.faults.app import journal  # noqa: E402
from tests.faults.app.models import Subject  # noqa: E402
from tests.faults.app.timelines import DECLARED, KINDS  # noqa: E402
from timeline.exceptions import TimelineError  # noqa: E402
from timeline.shortcuts import cancel, emit, move, redrive, schedule  # noqa: E402

TICK: Final = 0.25  # Seconds.
PATIENCE: Final = 60.0  # Seconds that they ask again and again.
OF_RUNS: Final = 0.3  # Share of the tasks that belong to runs, of four each.
OF_SLOW: Final = 300.0  # Tasks that take a while, so that kills find some in their handlers; a tenth of few.
BUSY: Final = 0.6  # Share of the time in which new tasks come.


class Clients:
    """
    All of them.

    Args:
        seed: What they do is drawn from it.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 (repeatable, not secret)
        self._calls = 0
        self._slow = 0.0
        self._tasks: list[Any] = []
        self._subjects: list[Subject] = []
        self._cancelled: list[Any] = []

    def work(self, tasks: int, seconds: float) -> None:
        """Ask for so many tasks in the beginning of this time, and change some of them until its end; or longer, if need be."""
        begun = time.monotonic()
        self._slow = min(OF_SLOW / tasks, 0.1)
        runs = round(tasks * OF_RUNS / 4)
        loose = tasks - runs * 4
        pool = self.ask("subjects", lambda: Subject.objects.bulk_create([Subject() for _ in range(200)]))
        while (passed := time.monotonic() - begun) < seconds or len(self._tasks) < loose:
            share = min(passed / (seconds * BUSY), 1)
            self._fill(runs * share, loose * share, pool)
            self.change_something()
            time.sleep(TICK)

    def _fill(self, runs: float, loose: float, pool: list[Subject]) -> None:
        """Ask for what is to be there by now, for a tick at most: others have their turn, too."""
        give_up = time.monotonic() + TICK
        while len(self._subjects) < runs and time.monotonic() < give_up:
            self.start()
        while len(self._tasks) < loose and time.monotonic() < give_up + TICK:
            self.schedule(self._random.choice(pool))

    def ask(self, verb: str, do: Callable[[], Any], *tasks: Any, entity: Any = None, due_at: Any = None) -> Any:
        """Ask until an answer comes, and write down when that was; None: it was refused, or none came."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            self._calls += 1
            named = [str(task.pk) for task in tasks]
            about, at = str(entity.pk) if entity else "", due_at.timestamp() if due_at else None
            journal.write("asked", call=self._calls, verb=verb, tasks=named, entity=about, due_at=at)
            try:
                done = do()
            except TimelineError:
                return None
            except (DatabaseError, InterfaceError):
                connection.close()
                time.sleep(0.1)
                continue
            made = [str(done.task.pk)] if verb == "schedule" else named
            journal.write("done", call=self._calls, tasks=made)
            return done
        return None

    def start(self) -> None:
        """A new subject begins the course, in one transaction with its row."""

        def begin() -> Subject:
            with transaction.atomic():
                subject = Subject.objects.create()
                emit("course.begun", subject, key="once")
            return subject

        subject = self.ask("begin", begin)
        if subject is not None:
            self.ask("start", lambda: emit("course.begun", subject, key="once"), entity=subject)
            self._subjects.append(subject)

    def schedule(self, subject: Subject) -> None:
        """A task by itself, due now or soon."""
        at = timezone.now() + timedelta(seconds=self._random.choice([-1, 0, 0, 1, self._random.uniform(0, 5)]))
        key, kind, payload = f"loose {len(self._tasks)}", self._random.choice(KINDS), self._payload()
        done = self.ask(
            "schedule", lambda: schedule(f"loose.{kind}", subject, at=at, payload=payload, key=key), due_at=at
        )
        self._tasks.append(done.task if done else None)

    def change_something(self) -> None:
        """A few changes of what there is."""
        tasks = [task for task in self._tasks[-400:] if task is not None]
        if tasks:
            chosen = self._random.choice(tasks)
            if self.ask("cancel", lambda: cancel(chosen, reason="not wanted"), chosen):
                self._cancelled.append(chosen)
            moved, at = self._random.choice(tasks), timezone.now() + timedelta(seconds=self._random.uniform(0, 5))
            self.ask("move", lambda: move(moved, at=at, reason="later"), moved)
        if self._subjects and self._random.random() < 0.5:
            subject = self._random.choice(self._subjects[-100:])
            self.ask("exit", lambda: emit("course.left", subject, key="once"), entity=subject)
        if self._cancelled and self._random.random() < 0.3:
            again = self._cancelled.pop()
            self.ask("redrive", lambda: redrive(again, reason="wanted after all"), again)

    def _payload(self) -> dict[str, Any]:
        payload: dict[str, Any] = {}
        if self._random.random() < 0.03:
            payload["fails"] = 1
        if self._random.random() < self._slow:
            payload["seconds"] = round(self._random.uniform(0.1, 1.5), 2)
        return payload


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.chaos.clients", description=__doc__)
    parser.add_argument("--tasks", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    given = parser.parse_args()
    journal.write("declared", **DECLARED)
    Clients(given.seed).work(given.tasks, given.seconds)


if __name__ == "__main__":
    main()
