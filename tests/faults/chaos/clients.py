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

from tests.faults.app import journal, machines  # noqa: E402
from tests.faults.app.models import Subject  # noqa: E402
from tests.faults.app.timelines import DECLARED, KINDS  # noqa: E402
from timeline.exceptions import TimelineError  # noqa: E402
from timeline.models import TimelineRun  # noqa: E402
from timeline.shortcuts import cancel, emit, move, redrive, schedule  # noqa: E402

TICK: Final = 0.25  # Seconds.
PATIENCE: Final = 60.0  # Seconds that they ask again and again.
OF_RUNS: Final = 0.3  # Share of the tasks that belong to runs, of four each.
OF_SLOW: Final = 300.0  # Tasks that take a while, so that kills find some in their handlers; a tenth of few.
BUSY: Final = 0.6  # Share of the time in which new tasks come.
OF_VISITS: Final = 0.25  # How many runs of a machine there are beside each task.
TALKS: Final = 6  # Visits to which somebody says something in a tick.


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
        self._visitors: list[Subject] = []
        self._cancelled: list[Any] = []

    def work(self, tasks: int, seconds: float) -> None:
        """Ask for so many tasks in the beginning of this time, and change some of them until its end; or longer, if need be."""
        begun = time.monotonic()
        self._slow = min(OF_SLOW / tasks, 0.1)
        runs = round(tasks * OF_RUNS / 4)
        loose = tasks - runs * 4
        pool = self.ask("subjects", lambda: Subject.objects.bulk_create([Subject() for _ in range(200)]))
        visits = round(tasks * OF_VISITS)
        while (
            (passed := time.monotonic() - begun) < seconds or len(self._tasks) < loose or len(self._visitors) < visits
        ):
            share = min(passed / (seconds * BUSY), 1)
            self._fill(runs * share, loose * share, pool)
            self._visit(visits * share)
            self.change_something()
            self.talk()
            time.sleep(TICK)

    def _fill(self, runs: float, loose: float, pool: list[Subject]) -> None:
        """Ask for what is to be there by now, for a tick at most: others have their turn, too."""
        give_up = time.monotonic() + TICK
        while len(self._subjects) < runs and time.monotonic() < give_up:
            self.start()
        while len(self._tasks) < loose and time.monotonic() < give_up + TICK:
            self.schedule(self._random.choice(pool))

    def _visit(self, visits: float) -> None:
        give_up = time.monotonic() + TICK
        while len(self._visitors) < visits and time.monotonic() < give_up:
            if (visitor := self._begin("visit.wanted")) is not None:
                self._visitors.append(visitor)

    def talk(self) -> None:
        """Say to some visits what they wait for, as they are just now; now and then what they do not take."""
        some = self._random.sample(self._visitors, min(len(self._visitors), 5 * TALKS))
        known = {str(one.pk): one for one in some}
        try:
            found = TimelineRun.objects.open().filter(timeline="visit", entity_id__in=known)
            states = list(found.values_list("entity_id", "state"))
        except (DatabaseError, InterfaceError):
            connection.close()
            return
        for key, state in states[:TALKS]:
            events = machines.SAID.get(state, ()) if self._random.random() < 0.9 else ("visit.chosen",)
            for event in self._random.sample(events, min(len(events), 1)):
                self._say(known[key], event, state)

    def _say(self, visitor: Subject, event: str, state: str) -> None:
        key = f"said {self._calls}"

        def say() -> Any:
            return emit(event, visitor, key=key, machine="visit", expect=state)

        self.ask("say", say, entity=visitor, key=key)

    def ask(
        self, verb: str, do: Callable[[], Any], *tasks: Any, entity: Any = None, due_at: Any = None, key: str = ""
    ) -> Any:
        """Ask until an answer comes, and write down when that was; None: it was refused, or none came."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            self._calls += 1
            named = [key] if key else [str(task.pk) for task in tasks]
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
        """A new subject begins the course."""
        if (subject := self._begin("course.begun")) is not None:
            self._subjects.append(subject)

    def _begin(self, event: str) -> Subject | None:
        """A new subject with its run, in one transaction."""

        def begin() -> Subject:
            with transaction.atomic():
                subject = Subject.objects.create()
                emit(event, subject, key="once")
            return subject

        subject: Subject | None = self.ask("begin", begin)
        if subject is not None:
            self.ask("start", lambda: emit(event, subject, key="once"), entity=subject)
        return subject

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
    journal.write("declared", **DECLARED, machines=machines.DECLARED)
    Clients(given.seed).work(given.tasks, given.seconds)


if __name__ == "__main__":
    main()
