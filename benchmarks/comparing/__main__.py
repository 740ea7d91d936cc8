"""Measure each peer, and keep and print what came of it. One that fails is named and left out; the others go on."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import sys
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import psycopg

from benchmarks.comparing.environments import Unavailable, python_of
from benchmarks.comparing.measuring import measuring
from benchmarks.comparing.plan import OUTPUT, PUBLISHED, REDIS, Plan, parse
from benchmarks.comparing.processes import Failed, Processes
from benchmarks.comparing.report import main as report
from benchmarks.comparing.results import machine, put_beside, read, shown, spread, write
from benchmarks.databases import own_database, server_url


def measure(name: str, plan: Plan) -> dict[str, Any]:
    """
    Measure one peer on a database of its own.

    Raises:
        Unavailable: if it cannot be had here.
        Failed: if it does not do what it is asked.
    """
    if name in REDIS and not answers(plan.broker):
        raise Unavailable(f"needs Redis, and none answers at {plan.broker}")
    python = python_of(name)
    with own_database() as url:
        environment = {
            "BENCHMARK_DATABASE_URL": url,
            "BROKER_URL": plan.broker if name in REDIS else "",
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
            "QUEUE_PREFIX": f"timeline-benchmark-{os.getpid()}",
        }
        with measuring(Processes(name, python, environment), url, plan) as measured:
            measured.install()
            for run in range(1, plan.runs + 1):
                say(f"{name}, run {run} of {plan.runs}")
                if not plan.beside:
                    measured.schedule()
                for job, jobs in plan.jobs:
                    for workers in plan.workers:
                        measured.drain(job, jobs, workers)
                if not plan.beside:
                    measured.latency()
            if not plan.beside:
                say(f"{name}, among {plan.sizes[-1]:,} rows")
                measured.grow()
            return {**measured.peer.about, **dataclasses.asdict(measured.figures)}


def answers(broker: str) -> bool:
    """Whether somebody listens there."""
    parts = urlsplit(broker)
    try:
        socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 6379), timeout=2).close()
    except OSError:
        return False
    return True


def say(text: str) -> None:
    """Let whoever waits know."""
    print(text, file=sys.stderr, flush=True)


def main(plan: Plan) -> bool:
    """Measure, print, keep; give whether all that can be had here did what they were asked."""
    started, failed = perf_counter(), False
    peers: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    os.environ["DATABASE_URL"] = server = server_url()  # One server for all.
    found = machine(server)
    print("; ".join(f"{name} {value}" for name, value in found.items()))
    for name in plan.peers:
        try:
            peers[name] = measure(name, plan)
        except (Unavailable, Failed, psycopg.Error) as error:
            left_out[name] = str(error).strip().splitlines()[-1]
            failed = failed or not isinstance(error, Unavailable)
            say(f"!!! {name} IS LEFT OUT: {error}")
            continue
        show(peers[name])
        keep(plan, {"machine": found, "peers": peers, "left_out": left_out})
    print(f"{perf_counter() - started:.0f} s in all")
    keep(plan, {"machine": found, "peers": peers, "left_out": left_out})
    return not failed


def keep(plan: Plan, measured: dict[str, Any]) -> None:
    """Write down what is known by now: it should not be lost if this is stopped."""
    asked = {key: value for key, value in dataclasses.asdict(plan).items() if key not in ("output", "beside", "broker")}
    results = {"plan": asked, **measured}
    if plan.output is not None:
        write(results, plan.output)
    if plan.output == OUTPUT:
        write(shown(results), PUBLISHED)
        report()
    elif plan.beside:
        write(put_beside(read(PUBLISHED), results, plan.beside), PUBLISHED)
        report()


def show(peer: dict[str, Any]) -> None:
    """Print one peer's figures."""
    version = f"{peer['package']} {peer['version']}, Python {peer['python']}"
    print(f"\n{peer['title']}: {version}, {peer['slots']} at a time in a worker")
    for setting in peer["settings"]:
        print(f"  {setting['name']} {setting['value']}: {setting['why']}")
    for measure_name, values in peer["values"].items():
        middle, least, most = spread(values)
        print(f"  {measure_name:<20} {middle:>12,.1f}   {least:>12,.1f} – {most:,.1f}")
    for measure_name, reason in peer["not_offered"].items():
        print(f"  {measure_name:<20} not offered: {reason}")
    for found in peer["counted"]:
        drain = f"{found['job']}, {found['workers']} workers"
        print(f"  {drain}: {found['completed']} completed, counted {found['counted']} times")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # In good order: workers end, databases go.
    sys.exit(0 if main(parse(sys.argv[1:])) else 1)
