"""
Django's own tasks: our backend beside django-tasks-db, on PostgreSQL, with the same functions, the same Django and as many
worker processes, which are our ``timeline_worker`` and its ``db_worker``. Each round measures one and then the other, the next
round the other way round; what counts is the ratio within a round, as others may use the machine. Functions that write commit
by themselves, so that both wait for the disk: what has to be reached is asked of those that do nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.comparing.environments import python_of
from benchmarks.comparing.measuring import Measuring, measuring
from benchmarks.comparing.plan import Plan
from benchmarks.comparing.processes import Processes
from benchmarks.databases import own_database, server_url

OURS: Final = "timeline_tasks"
THEIRS: Final = "django_tasks_db"
ENQUEUED: Final = ("enqueue_each", "enqueue_together", "schedule_one")
DRAINED: Final = ("nothing", "entity", "count")
LEAST: Final = {**dict.fromkeys(ENQUEUED, 0.8), "drain nothing": 4.0}  # Ours, as a part of theirs.


class Rounds:
    """
    Rounds of both.

    Args:
        rows: Enqueued one by one.
        jobs: Drained by ours; theirs get a quarter, which takes them as long.
        workers: Processes.
    """

    def __init__(self, rows: int, jobs: int, workers: int) -> None:
        self.rows, self.jobs, self.workers = rows, jobs, workers
        self.plan = Plan(window=20.0, shortest=0.5, workers=(workers,))
        self.sides: dict[str, Measuring] = {}

    def begin(self, stack: ExitStack) -> None:
        """Make a database for each, and its tables."""
        for name in (OURS, THEIRS):
            url = stack.enter_context(own_database(name))
            given = {"BENCHMARK_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "benchmarks.settings", "BROKER_URL": ""}
            self.sides[name] = stack.enter_context(measuring(Processes(name, python_of(name), given), url, self.plan))
            self.sides[name].install()
            about = self.sides[name].peer.about
            print(f"{name}: {about['package']} {about['version']}, Python {about['python']}")

    def take(self, order: tuple[str, ...]) -> dict[str, float]:
        """Measure each thing of both, one right after the other; give ours as a part of theirs."""
        found: dict[str, float] = {}
        for what in (*ENQUEUED, *DRAINED):
            rates = {name: self._rate(name, what) for name in order}
            called = f"drain {what}" if what in DRAINED else what
            found[called] = rates[OURS] / rates[THEIRS]
            told = f"{rates[OURS]:>9,.0f} beside {rates[THEIRS]:>7,.0f} a second"
            print(f"  {called:<17} {found[called]:6.2f} x   {told}   load {os.getloadavg()[0]:.1f}", flush=True)
        return found

    def _rate(self, name: str, what: str) -> float:
        side = self.sides[name]
        if what in ENQUEUED:
            side.clear()
            return float(side.peer.ask(what, self.rows)["answer"])
        side.drain(what, self.jobs if name == OURS else max(self.jobs // 4, 100), self.workers)
        return side.figures.values[f"drain.{what}.{self.workers}"][-1]


def main(rounds: int, rows: int, jobs: int, workers: int, threads: int, shared: bool, output: str) -> bool:
    """Measure, print, and give whether the middle ratios are no less than they have to be."""
    os.environ |= {"BENCHMARK_TASKS": "shared" if shared else "apart", "BENCHMARK_THREADS": str(threads)}
    os.environ["DATABASE_URL"] = server_url()
    ratios: dict[str, list[float]] = {}
    with ExitStack() as stack:
        both = Rounds(rows, jobs, workers)
        both.begin(stack)
        for number in range(rounds):
            print(f"round {number + 1} of {rounds}")
            for name, ratio in both.take((OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS)).items():
                ratios.setdefault(name, []).append(ratio)
    middle = {name: median(values) for name, values in ratios.items()}
    print("ours as a part of theirs, the middle of all rounds, and from least to most:")
    for name, values in ratios.items():
        print(f"  {name:<17} {middle[name]:6.2f} x   {min(values):.2f} - {max(values):.2f}")
    if output:
        told = {"workers": workers, "rows": rows, "jobs": jobs, "threads": threads, "shared": shared, "ratios": ratios}
        Path(output).write_text(json.dumps(told, indent=1), encoding="utf-8")
    return all(middle[name] >= least for name, least in LEAST.items())


def _parsed() -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2_000, help="enqueued in each round")
    parser.add_argument("--jobs", type=int, default=8_000, help="drained in each round, of each kind")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--threads", type=int, default=1, help="of each of our processes; theirs have one")
    parser.add_argument(
        "--shared", action="store_true", help="our backend with atomic='shared', not False, its default"
    )
    parser.add_argument("--json", dest="output", default="", help="file for the ratios")
    return vars(parser.parse_args())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # In good order: workers end, databases go.
    sys.exit(0 if main(**_parsed()) else 1)
