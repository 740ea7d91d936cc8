"""What is measured, how often and how big: from the command line."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

JOBS: Final = ("nothing", "entity", "count", "shared", "many", "brief", "long")
SLEEPS: Final = {"brief": 0.005, "long": 0.2}  # Seconds.
OURS: Final = ("timeline_embedded", "timeline_celery", "raw_sql")
PEERS: Final = (*OURS, "oban", "procrastinate", "django_tasks_db", "django_q2", "dbos", "celery_rows")
REDIS: Final = frozenset({"timeline_celery", "celery_rows"})  # They need a broker.
FOLDER: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = FOLDER.parent / ".bench" / "results.json"  # All there is, for whoever measured.
PUBLISHED: Final = FOLDER / "results.json"  # What the page shows of it.


@dataclass(frozen=True, kw_only=True)
class Plan:
    """
    One whole measurement.

    Args:
        peers: Names of adapters, in order.
        runs: How often each figure is taken; the sizes are filled once, and asked several times.
        rows: How many are scheduled one by one.
        bulk: How many are scheduled in bulk: fewer are over before they can be timed.
        jobs: How many are drained, of each kind.
        workers: Numbers of worker processes.
        window: Seconds after which a drain is counted as far as it came.
        sizes: Rows due much later, among which is polled, claimed and cancelled; growing.
        seconds: How long jobs are fed, twenty a second, to see how long one waits.
        broker: Redis.
        shortest: Seconds that a drain must take to count; what is over sooner is done again, with more jobs.
        output: File for the figures; None: they are printed only.
        beside: How it was, where drains alone are measured, and shown beside those on the page; empty: all is measured.
    """

    peers: tuple[str, ...] = PEERS
    runs: int = 3
    rows: int = 2_000
    bulk: int = 20_000
    jobs: tuple[tuple[str, int], ...] = (
        ("nothing", 20_000),
        ("entity", 8_000),
        ("count", 8_000),
        ("shared", 8_000),
        ("many", 8_000),
        ("brief", 1_000),
        ("long", 100),
    )
    workers: tuple[int, ...] = (1, 2)
    window: float = 4.0
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000, 5_000_000)
    seconds: int = 8
    broker: str = "redis://127.0.0.1:6379/0"
    shortest: float = 0.5
    output: Path | None = OUTPUT
    beside: str = ""


QUICK: Final = {
    "peers": OURS,
    "runs": 1,
    "rows": 1_500,
    "bulk": 6_000,
    "jobs": (("nothing", 3_000), ("entity", 2_000), ("count", 2_000), ("shared", 2_000)),
    "sizes": (100_000,),
    "seconds": 5,
    "window": 5.0,
    "output": None,
}


def parse(arguments: Sequence[str]) -> Plan:
    """
    Read the command line.

    Args:
        arguments: Without the program's name. ``--quick`` sets smaller sizes, which the others may set again.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparing", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="ours alone, each figure once, smaller")
    parser.add_argument("--only", type=_names, metavar="NAME,…", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--runs", type=_positive, help="how often each figure is taken")
    parser.add_argument("--rows", type=_positive, help="scheduled one by one")
    parser.add_argument("--bulk", type=_positive, help="scheduled in bulk")
    parser.add_argument("--jobs", type=_jobs, metavar="NAME=COUNT,…", help=f"drained: of {', '.join(JOBS)}")
    parser.add_argument("--workers", type=_numbers, metavar="N,…", help="numbers of worker processes")
    parser.add_argument("--window", type=float, help="seconds after which a drain is counted as far as it came")
    parser.add_argument("--sizes", type=_numbers, metavar="ROWS,…", help="rows due much later, growing")
    parser.add_argument("--seconds", type=_seconds, help="of feeding twenty jobs a second; the first is warm-up")
    parser.add_argument("--shortest", type=float, help="seconds that a drain must take to count")
    parser.add_argument("--broker", default=os.environ.get("REDIS_URL", Plan.broker), help="Redis (%(default)s)")
    parser.add_argument("--output", type=Path, help="file for the figures; left out, some peers are printed only")
    parser.add_argument(
        "--beside", metavar="HOW", help="measure drains alone, show them beside those on the page, and say how it was"
    )
    given = vars(parser.parse_args(arguments))
    quick, peers = given.pop("quick"), given.pop("only")
    chosen = {name: value for name, value in {**given, "peers": peers}.items() if value is not None}
    some = {"output": None} if peers or given["beside"] else {}  # Some of it does not make the page.
    return Plan(**{**(QUICK if quick else {}), **some, **chosen})


def _positive(text: str) -> int:
    number = int(text.replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _seconds(text: str) -> int:
    number = _positive(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"{number} is all warm-up; give 2 or more")
    return number


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(sorted({_positive(part) for part in text.split(",")}))


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := sorted(set(names) - set(PEERS)):
        raise argparse.ArgumentTypeError(f"no peer is called {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return names


def _jobs(text: str) -> tuple[tuple[str, int], ...]:
    pairs = [part.partition("=") for part in text.split(",")]
    if unknown := sorted({name for name, _, _ in pairs} - set(JOBS)):
        raise argparse.ArgumentTypeError(f"no job is called {', '.join(unknown)}; there are {', '.join(JOBS)}")
    return tuple((name, _positive(count)) for name, _, count in pairs)
