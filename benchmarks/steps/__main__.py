"""Measure in rounds, each peer in each of them, and print what came of it. One that cannot be had here is left out."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from benchmarks.comparing import plan as comparing
from benchmarks.comparing.environments import Unavailable, python_of
from benchmarks.comparing.measuring import Measuring, measuring
from benchmarks.comparing.processes import Failed, Processes
from benchmarks.comparing.results import machine
from benchmarks.databases import own_database, server_url
from benchmarks.peers.jobs import STEPS
from benchmarks.steps.killing import kill
from benchmarks.steps.plan import PEERS, Plan, parse
from benchmarks.steps.report import show

WINDOW = 10.0  # Seconds after which a drain is counted as far as it came.
RECORDS = "timeline_step"


@contextmanager
def prepared(name: str, plan: Plan) -> Iterator[tuple[Measuring, str]]:
    """
    Have a peer, installed, on a database of its own; give the URL of that, too.

    Raises:
        Unavailable: if it cannot be had here.
        Failed: if it does not do what it is asked.
    """
    found = PEERS[name]
    python = python_of(found.environment) if found.environment else sys.executable
    size = comparing.Plan(window=WINDOW, shortest=plan.shortest)
    with own_database(name) as url:
        environment = {
            "BENCHMARK_DATABASE_URL": url,
            "BROKER_URL": "",
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
            "QUEUE_PREFIX": f"timeline-benchmark-{os.getpid()}",
        }
        with measuring(Processes(found.adapter, python, environment), url, size) as measured:
            measured.install()
            yield measured, url


def bytes_of_a_record(url: str) -> float:
    """Table and indexes, vacuumed, by the records there are."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"VACUUM {RECORDS}")
        sized = f"SELECT pg_total_relation_size('{RECORDS}')::float / count(*) FROM {RECORDS}"  # noqa: S608
        return float(connection.execute(sized).fetchone()[0])


def measure(plan: Plan) -> dict[str, Any]:
    """Give what each peer is, its steps a second, and why others are left out."""
    left_out: dict[str, str] = {}
    sizes: list[float] = []
    with ExitStack() as stack:
        peers: dict[str, tuple[Measuring, str]] = {}
        for name in plan.peers:
            try:
                peers[name] = stack.enter_context(prepared(name, plan))
            except (Unavailable, Failed) as error:
                left_out[name] = str(error).strip().splitlines()[-1]
        for number in range(1, plan.rounds + 1):
            for kind in plan.kinds:
                for name, (measured, url) in peers.items():
                    say(f"round {number} of {plan.rounds}: {kind}, {name}")
                    measured.drain(kind, plan.tasks, 1)
                    if (name, kind) == ("timeline", "steps"):
                        sizes.append(bytes_of_a_record(url))
        killed = kill(*peers["timeline"]) if plan.kill and "timeline" in peers else None
        return {
            "killed": killed,
            "peers": {name: told(measured) for name, (measured, _) in peers.items()},
            "left_out": left_out,
            "bytes_of_a_record": sizes,
        }


def told(measured: Measuring) -> dict[str, Any]:
    """What a peer is, and how many steps a second it took, by their kind, a figure for each round."""
    rates = {name.split(".")[1]: [STEPS * rate for rate in values] for name, values in measured.figures.values.items()}
    whole = [found for found in measured.figures.counted if found["completed"] == found["jobs"]]  # Not cut off.
    wrong = [found for found in whole if found["counted"] != STEPS * found["completed"]]
    about = {name: measured.peer.about[name] for name in ("title", "package", "version", "slots", "settings", "notes")}
    return {**about, "steps_a_second": rates, "miscounted": wrong}


def say(text: str) -> None:
    """Let whoever waits know."""
    print(text, file=sys.stderr, flush=True)


def main(plan: Plan) -> bool:
    """Measure, print, keep; give whether all that can be had here did what they were asked, and wrote what they recorded."""
    os.environ["DATABASE_URL"] = server = server_url()  # One server for all.
    results = {"machine": machine(server), "tasks": plan.tasks, "rounds": plan.rounds, **measure(plan)}
    show(results)
    if plan.output is not None:
        plan.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return not any(peer["miscounted"] for peer in results["peers"].values())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # In good order: workers end, databases go.
    sys.exit(0 if main(parse(sys.argv[1:])) else 1)
