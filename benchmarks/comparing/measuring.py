"""The measures, taken the same way for every peer: from outside, by its rows in the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from statistics import quantiles
from time import monotonic, perf_counter, sleep
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from benchmarks.comparing.plan import SLEEPS, Plan
from benchmarks.comparing.processes import Failed, Processes
from benchmarks.peers.jobs import MEMBERS, OF_THEIR_OWN, TABLES

# Where a job that writes counts up.
COUNTERS: Final = {
    "entity": "bench_member",
    "step_updates": "bench_member",
    "count": "bench_entity",
    "shared": "bench_entity",
    "many": "bench_entity",
}
LOOK: Final = 0.1  # Seconds between two looks at a counter, which counts all rows.
WAVES: Final = 4  # Of sleeping jobs, at least: the first is warm-up.
WARM_UP: Final = 0.1  # Of the jobs: they are not timed.
STUCK: Final = 30  # Seconds without a completion.
CANCELS: Final = 5  # Entities whose jobs are called off at each size; one more before, which is not timed.
PICK_UPS_LEFT_OUT: Final = 20  # The first of them, while caches fill.


class Timed(NamedTuple):
    """Jobs completed in so many seconds."""

    jobs: int
    seconds: float


@dataclass
class Figures:
    """What came of it: values by the measure's name, one a run; and what is not offered, with the reason."""

    values: dict[str, list[float]] = field(default_factory=dict)
    not_offered: dict[str, str] = field(default_factory=dict)
    counted: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name: str, *values: float) -> None:
        """Take values down, if there are any."""
        if values:
            self.values.setdefault(name, []).extend(values)

    def take(self, name: str, answer: dict[str, Any]) -> Any:
        """Give the answer; None where there is none, and take down why."""
        if "not_offered" in answer:
            self.not_offered[name] = answer["not_offered"]
        return answer.get("answer")


def amid(size: int, at: int) -> int:
    """
    Choose the entities whose jobs are called off: from the middle of the rows, and none at two sizes.

    Args:
        size: Rows; ten for each entity.
        at: Of which size this is, from 0.

    Returns:
        The first of them.
    """
    return max(100, size // 20) + 2 * CANCELS * at


class Measuring:
    """
    One peer on one database.

    Args:
        peer: Its processes.
        url: Of the database.
        plan: How much of it.
    """

    def __init__(self, peer: Processes, url: str, plan: Plan) -> None:
        self.peer, self.plan, self.figures = peer, plan, Figures()
        self._database = psycopg.connect(url, autocommit=True)
        self._gate = psycopg.connect(url)

    def close(self) -> None:
        """Let go of the database."""
        self._gate.close()
        self._database.close()

    def install(self) -> None:
        """Make the tables, the peer's and those of the jobs."""
        self._database.execute(TABLES)
        self.peer.about = self.peer.ask("describe")["answer"]
        self.peer.ask("install")

    def schedule(self) -> None:
        """Rows a second, one by one and in bulk; and how big a waiting row is."""
        for name, rows in {"schedule_one": self.plan.rows, "schedule_many": self.plan.bulk}.items():
            self.clear()
            self._checkpoint()
            rate = self.figures.take(name, self.peer.ask(name, rows))
            if rate is not None:
                self.figures.add(name, rate)
            if name == "schedule_one":
                self.figures.add("bytes.waiting", self._bytes(self.plan.rows))

    def drain(self, job: str, jobs: int, workers: int) -> None:
        """
        Jobs a second, from the first completion after a warm-up to the last, or as far as it came in the window.

        What is over too soon to be timed is done again, with more jobs.
        """
        if job not in self.peer.about["jobs"]:
            self.figures.not_offered[f"drain.{job}"] = "no such kind of job"
            return
        if job in SLEEPS:
            jobs = max(jobs, WAVES * workers * self.peer.about["slots"])
        while (timed := self._drained(job, jobs, workers)).seconds < self.plan.shortest:
            jobs *= 4
        self.figures.add(f"drain.{job}.{workers}", timed.jobs / timed.seconds)
        if job in COUNTERS:
            self._check_counters(job, jobs, workers)
        if (job, workers) == ("nothing", self.plan.workers[0]) and self._completed() == jobs:
            self.figures.add("bytes.done", self._bytes(jobs))

    def latency(self) -> None:
        """Milliseconds from the call that schedules a job until its handler runs, at twenty jobs a second."""
        self.clear()
        jobs = self.plan.seconds * 20
        with self.peer.working(1):
            self.peer.ask("feed", jobs)
            self._wait("SELECT count(*) FROM bench_pickup", jobs)
        rows = self._database.execute(
            "SELECT seconds * 1000 FROM bench_pickup WHERE number >= %s", [PICK_UPS_LEFT_OUT]
        ).fetchall()
        hundredths = quantiles([milliseconds for (milliseconds,) in rows], n=100)
        self.figures.add("latency.p50", hundredths[49])
        self.figures.add("latency.p99", hundredths[98])

    def grow(self) -> None:
        """Polls, claims and cancels among ever more rows that are due much later."""
        self.clear()
        rows = 0
        for at, size in enumerate(self.plan.sizes):
            self.peer.ask("fill", rows, size)
            self._vacuum()
            rows = size
            for name in ("poll", "claim"):
                answer = self.figures.take(name, self.peer.ask(name))
                self.figures.add(f"{name}.{size}", *(answer or []))
            answer = self.figures.take("cancel", self.peer.ask("cancel", amid(size, at), CANCELS))
            self.figures.add(f"cancel.{size}", *(answer or []))

    def clear(self) -> None:
        """Take all jobs away, and what they wrote."""
        self._database.execute(self.peer.about["clear"])
        self._database.execute("TRUNCATE bench_pickup, bench_member")
        self._database.execute("UPDATE bench_entity SET counter = 0")

    def _vacuum(self, how: str = "ANALYZE") -> None:
        for table in self.peer.about["tables"]:
            self._database.execute(sql.SQL("VACUUM ({}) {}").format(sql.SQL(how), self._table(table)))
        if how == "ANALYZE":
            self._checkpoint()

    def _checkpoint(self) -> None:
        """Have one now, so that none falls into the middle."""
        with suppress(psycopg.errors.InsufficientPrivilege):
            self._database.execute("CHECKPOINT")

    def _bytes(self, rows: int) -> float:
        """Of tables and indexes, packed, for each job."""
        self._vacuum("FULL")
        tables = self.peer.about["tables"]
        sizes = [self._database.execute("SELECT pg_total_relation_size(%s)", [name]).fetchone()[0] for name in tables]
        return sum(sizes) / rows

    def _lock(self) -> None:
        self._gate.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(self._table(self.peer.about["gate"])))

    def _table(self, name: str) -> sql.Identifier:
        return sql.Identifier(*name.split("."))

    def _completed(self) -> int:
        return int(self._database.execute(self.peer.about["completed"]).fetchone()[0])

    def _drained(self, job: str, jobs: int, workers: int) -> Timed:
        """All is ready before it begins: the jobs are there, the workers are up, and a lock keeps them from taking any."""
        self.clear()
        if job in OF_THEIR_OWN:
            self._database.execute(MEMBERS, [jobs])
            self._database.execute("VACUUM (ANALYZE) bench_member")
        self.peer.ask("enqueue", job, jobs)
        self._vacuum()
        self._lock()
        try:
            with self.peer.working(workers):
                self._gate.rollback()
                return self._watch(jobs)
        finally:
            self._gate.rollback()

    def _watch(self, jobs: int) -> Timed:
        """Time what is completed after the warm-up."""
        early, begin = next(look for look in self._looks(jobs) if look[0] >= jobs * WARM_UP)
        for done, now in self._looks(jobs):
            if done > early and (done >= jobs or now - begin > self.plan.window):
                return Timed(done - early, now - begin)
        return Timed(0, 0.0)

    def _looks(self, jobs: int) -> Iterator[tuple[int, float]]:
        last, give_up = -1, monotonic() + STUCK
        while last < jobs:
            done, now = self._completed(), perf_counter()
            if done != last:
                last, give_up = done, monotonic() + STUCK
                yield done, now
            elif monotonic() > give_up:
                raise Failed(f"{self.peer.name}: {done} of {jobs} jobs completed, and then none")
            sleep(LOOK)

    def _wait(self, count: str, wanted: int) -> None:
        give_up = monotonic() + STUCK
        while self._database.execute(count).fetchone()[0] < wanted:
            if monotonic() > give_up:
                raise Failed(f"{self.peer.name}: only {self._database.execute(count).fetchone()[0]} of {wanted}")
            sleep(0.1)

    def _check_counters(self, job: str, jobs: int, workers: int) -> None:
        """What the jobs wrote, beside what is recorded of them, after the workers were stopped."""
        total = sql.SQL("SELECT sum(counter) FROM {}").format(self._table(COUNTERS[job]))
        counted = self._database.execute(total).fetchone()[0]
        found = {"job": job, "workers": workers, "jobs": jobs, "completed": self._completed(), "counted": int(counted)}
        self.figures.counted.append(found)


@contextmanager
def measuring(peer: Processes, url: str, plan: Plan) -> Iterator[Measuring]:
    """Measure on this database, and leave nothing in the broker."""
    found = Measuring(peer, url, plan)
    try:
        yield found
    finally:
        with closing(peer), closing(found):
            peer.ask("remove")
