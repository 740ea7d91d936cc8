"""Handlers of every kind. Each says when it is entered and left; atomic ones write a row."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.faults.app import journal
from tests.faults.app.models import Effect, Subject
from timeline import Limit, Retry, Timeline, after, task

SOON = Retry(max_attempts=100, base=timedelta(milliseconds=200), factor=1.2, cap=timedelta(seconds=2))
PATIENCE = 60.0  # Seconds that a handler waits at a gate.


class Course(Timeline):
    """A run of four: two at once, and what follows one of them."""

    entity = "faults.Subject"
    starts_on = "course.begun"
    exits = {"course.left": "left"}

    @task(after(seconds=0.3), retry=SOON)
    def first(self, subject: Subject) -> None:
        with handled(self, "atomic"):
            pass

    @task(after(seconds=0.3), atomic=False, retry=SOON)
    def tell(self, subject: Subject) -> None:
        with handled(self, "plain"):
            pass

    @task(after(first, seconds=0.3), atomic=False, retry=SOON)
    def then(self, subject: Subject) -> None:
        with handled(self, "plain"):
            pass

    @task(after(then), atomic="shared", retry=SOON)
    def last(self, subject: Subject) -> None:
        with handled(self, "atomic"):
            pass


# What the checker is told of it: written down once more, lest it be told what the package made of it.
DECLARED = {
    "follow_ups": {"course.first": ["course.then"], "course.then": ["course.last"]},
    "roots": {"course": ["course.first", "course.tell"]},
    "limits": {"loose.narrow": [1, "attempt"], "loose.to_the_end": [1, "end"]},
}


class Loose(Timeline):
    """Tasks by themselves; their payload says what happens in them."""

    entity = "faults.Subject"

    @task(retry=SOON)
    def atomic(self, subject: Subject) -> None:
        with handled(self, "atomic"):
            play(self)

    @task(atomic=False, retry=SOON)
    def plain(self, subject: Subject) -> None:
        with handled(self, "plain"):
            play(self)

    @task(atomic="shared", retry=SOON)
    def shared(self, subject: Subject) -> None:
        with handled(self, "atomic"):
            play(self)

    @task(bulk=20, retry=SOON)
    def bulk(self, subjects: list[Subject]) -> None:
        with all_handled(list(self.tasks.values()), "atomic"):
            pass

    @task(bulk=20, atomic=False, retry=SOON)
    def bulk_plain(self, subjects: list[Subject]) -> None:
        with all_handled(list(self.tasks.values()), "plain"):
            pass

    @task(atomic=False, retry=SOON)
    async def slow(self, subject: Subject) -> None:
        with handled(self, "plain"):
            await asyncio.sleep(self.task.payload.get("seconds", 0))

    @task(atomic=False, limit=1, retry=SOON)
    def narrow(self, subject: Subject) -> None:
        with handled(self, "plain"):
            play(self)

    @task(atomic=False, limit=Limit(1, until="end"), retry=SOON)
    def to_the_end(self, subject: Subject) -> None:
        with handled(self, "plain"):
            play(self)


KINDS = ("atomic", "plain", "shared", "bulk", "bulk_plain", "slow")


@contextmanager
def all_handled(contexts: Sequence[Any], kind: str) -> Iterator[None]:
    """Say that handlers are entered, write their effects, and say how they are left."""
    calls = journal.entered(
        [context.task for context in contexts], kind, [context.idempotency_key for context in contexts]
    )
    how = "raised"
    try:
        yield
        if kind == "atomic":
            Effect.objects.bulk_create(
                [Effect(task=str(context.task.pk), attempt=context.task.attempt) for context in contexts]
            )
        how = "done"
    finally:
        journal.left(calls, how)


def handled(context: Any, kind: str) -> Any:
    """The same for one."""
    return all_handled([context], kind)


def play(context: Any) -> None:
    """Take as long as the payload says, wait at the gate that it names, and fail so many times."""
    payload = context.task.payload
    time.sleep(payload.get("seconds", 0))
    if gate := payload.get("gate"):
        folder = Path(os.environ["TEST_FOLDER"])
        (folder / f"{gate}-{context.task.attempt}.at").touch()
        give_up = time.monotonic() + PATIENCE
        while not (folder / f"{gate}-{context.task.attempt}.open").exists() and time.monotonic() < give_up:
            time.sleep(0.01)
    if context.task.attempt <= payload.get("fails", 0):
        raise RuntimeError("told to fail")
