"""What a peer is asked to do. What it cannot do raises ``NotOffered``, with the reason shown in the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic, perf_counter
from typing import ClassVar

LATER = timedelta(days=30)
MANY = 1_000  # Jobs in one call, where several may go in one.


class NotOffered(Exception):
    """The peer has no such thing."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is not the peer's default, and why."""

    name: str
    value: object
    why: str


class Adapter:
    """
    One peer.

    Attributes:
        title: As shown in the table.
        package: On the package index; its version is shown.
        settings: Each with its reason.
        jobs: Kinds of jobs it knows. Only ours share a transaction, or have a handler that takes many at once.
        slots: Jobs that one worker process has in hand at a time, as long as they only wait.
        ready: What a worker prints when it is up.
        helpers: Processes that workers need beside them: name → what it prints when it is up.
        gate: Table that workers lock rows of to take a job: held shut until all of them are up.
        tables: All that a job's life leaves rows in.
        completed: SQL that counts the jobs that have ended well.
        clear: SQL that takes all jobs away.
        together: Whether a job's own writes and its completion commit as one.
        notes: What it does less or more than the others.
    """

    title: ClassVar[str]
    package: ClassVar[str]
    settings: ClassVar[tuple[Setting, ...]] = ()
    jobs: ClassVar[tuple[str, ...]] = ("nothing", "entity", "count", "brief", "long")
    slots: ClassVar[int] = 1
    ready: ClassVar[str]
    helpers: ClassVar[dict[str, str]] = {}
    gate: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]
    completed: ClassVar[str]
    clear: ClassVar[str]
    together: ClassVar[bool] = False
    notes: ClassVar[str] = ""

    def __init__(self) -> None:
        self.url = os.environ["BENCHMARK_DATABASE_URL"]

    def install(self) -> None:
        """Make the peer's tables."""
        raise NotImplementedError

    def schedule_one(self, number: int) -> None:
        """Write one job that is due much later, in a transaction of its own."""
        raise NotImplementedError

    def schedule_many(self, numbers: Iterable[int]) -> None:
        """Write jobs that are due much later, by the fastest call there is."""
        raise NotOffered("no call for many")

    def enqueue(self, job: str, numbers: Iterable[int]) -> None:
        """Write jobs that are due now, as fast as may be."""
        raise NotImplementedError

    def feed(self, number: int, sent: float) -> None:
        """Write one job that is due now and tells how long it waited since ``sent``, in a transaction of its own."""
        raise NotImplementedError

    def work(self) -> None:
        """Be a worker until SIGTERM."""
        raise NotImplementedError

    def help(self, helper: str) -> None:
        """Be a process that workers need beside them, until SIGTERM."""
        raise NotImplementedError

    def fill(self, first: int, last: int) -> None:
        """Write so many jobs that are due much later, ten for each entity, as rows: no call would do a million in time."""
        raise NotImplementedError

    def make_due(self, many: int) -> None:
        """Write so many jobs that are due now, beside those."""
        self.enqueue("nothing", range(many))

    def poll(self) -> None:
        """Look once for what is due, as a worker does."""
        raise NotImplementedError

    def claim(self, many: int) -> int:
        """Take so many due jobs, as a worker does; say how many that were: fewer, where it takes too long one by one."""
        raise NotImplementedError

    def remember(self, entity: int) -> list[object]:
        """Give what the host must have kept to call off an entity's jobs, such as their ids; this is not timed."""
        return []

    def cancel(self, entity: int, kept: list[object]) -> int:
        """Call off the ten jobs of an entity; say how many that were."""
        raise NotOffered("no way to cancel")

    def close(self) -> None:
        """Let go of connections."""

    def remove(self) -> None:
        """Take away what is not in the database."""


def timed(call: Callable[[], object]) -> float:
    """Give the seconds it took."""
    started = perf_counter()
    call()
    return perf_counter() - started


def one_by_one(take: Callable[[], bool], many: int) -> int:
    """Take jobs one after the other, for ten seconds at most; say how many that were."""
    give_up, taken = monotonic() + 10, 0
    while taken < many and monotonic() < give_up and take():
        taken += 1
    return taken


def chunks(numbers: Iterable[int], size: int = MANY) -> Iterable[list[int]]:
    """Cut into lists."""
    whole = list(numbers)
    for first in range(0, len(whole), size):
        yield whole[first : first + size]
