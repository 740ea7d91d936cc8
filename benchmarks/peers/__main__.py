"""
Have a peer do things, and print what came of each as a line of JSON.

``python -m benchmarks.peers <name>`` reads one command a line, as JSON too, until there are no more: ``["poll"]``.
``python -m benchmarks.peers <name> <command> [<words>]`` does one, such as to be a worker.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version

from benchmarks.peers.adapter import Adapter, NotOffered, timed

WARM_UP = 50
PATIENCE = 20  # Seconds for all claims.
RATE = 20  # Jobs a second, where it is asked how long one waits.


def describe(peer: Adapter) -> dict[str, object]:
    """Tell what it is and how it is set up."""
    names = (
        "title",
        "package",
        "jobs",
        "slots",
        "ready",
        "helpers",
        "gate",
        "tables",
        "completed",
        "clear",
        "together",
        "notes",
    )
    return {
        "version": version(peer.package),
        "python": platform.python_version(),
        "settings": [asdict(setting) for setting in peer.settings],
        **{name: getattr(peer, name) for name in names},
    }


def schedule_one(peer: Adapter, many: str) -> float:
    """Jobs a second, one transaction each."""
    for number in range(WARM_UP):
        peer.schedule_one(number)
    numbers = range(WARM_UP, WARM_UP + int(many))
    return int(many) / timed(lambda: [peer.schedule_one(number) for number in numbers])


def schedule_many(peer: Adapter, many: str) -> float:
    """Jobs a second, as many at a time as one likes."""
    peer.schedule_many(range(WARM_UP))
    return int(many) / timed(lambda: peer.schedule_many(range(WARM_UP, WARM_UP + int(many))))


def enqueue_each(peer: Adapter, many: str) -> float:
    """Jobs a second that are due now, one transaction each."""
    numbers = range(WARM_UP, WARM_UP + int(many))
    peer.enqueue("nothing", range(WARM_UP))
    return int(many) / timed(lambda: [peer.enqueue("nothing", [number]) for number in numbers])


def enqueue_together(peer: Adapter, many: str) -> float:
    """The same in one transaction."""
    peer.enqueue("nothing", range(WARM_UP))
    return int(many) / timed(lambda: peer.enqueue("nothing", range(WARM_UP, WARM_UP + int(many))))


def enqueue(peer: Adapter, job: str, many: str) -> None:
    """Write jobs for a drain."""
    peer.enqueue(job, range(int(many)))


def feed(peer: Adapter, many: str) -> None:
    """Write jobs at an even pace."""
    begin = time.monotonic()
    for number in range(int(many)):
        time.sleep(max(0.0, begin + number / RATE - time.monotonic()))
        peer.feed(number, time.time())


def poll(peer: Adapter) -> list[float]:
    """Milliseconds of polls that find nothing; the first, which connect, are left out."""
    took, give_up = [], time.monotonic() + PATIENCE
    while len(took) < 23 and not (len(took) > 5 and time.monotonic() > give_up):
        took.append(timed(peer.poll) * 1000)
    return took[3:]


def claim(peer: Adapter) -> list[float]:
    """Milliseconds of taking a hundred due jobs; counted up, where one by one they were not taken in time."""
    took, give_up = [], time.monotonic() + PATIENCE
    while len(took) < 6 and not (len(took) > 1 and time.monotonic() > give_up):
        peer.make_due(100)
        before = time.perf_counter()
        claimed = peer.claim(100)
        if not claimed:
            raise SystemExit(f"{peer.title} claimed nothing.")
        took.append((time.perf_counter() - before) * 1000 * 100 / claimed)
    return took[1:]


def cancel(peer: Adapter, first: str, times: str) -> list[float]:
    """Milliseconds of calling off all ten jobs of an entity."""
    took = []
    for entity in range(int(first), int(first) + int(times) + 1):
        kept = peer.remember(entity)
        before = time.perf_counter()
        cancelled = peer.cancel(entity, kept)
        took.append((time.perf_counter() - before) * 1000)
        if cancelled != 10:
            raise SystemExit(f"{peer.title} cancelled {cancelled} jobs instead of 10.")
    return took[1:]


COMMANDS: dict[str, Callable[..., object]] = {
    "describe": describe,
    "schedule_one": schedule_one,
    "schedule_many": schedule_many,
    "enqueue": enqueue,
    "enqueue_each": enqueue_each,
    "enqueue_together": enqueue_together,
    "feed": feed,
    "poll": poll,
    "claim": claim,
    "cancel": cancel,
    "fill": lambda peer, first, last: peer.fill(int(first), int(last)),
    "help": lambda peer, helper: peer.help(helper),
    "install": lambda peer: peer.install(),
    "work": lambda peer: peer.work(),
    "remove": lambda peer: peer.remove(),
}


def answer(peer: Adapter, command: str, *numbers: str) -> None:
    """Do it, and print the answer."""
    try:
        found = {"answer": COMMANDS[command](peer, *numbers)}
    except NotOffered as reason:
        found = {"not_offered": str(reason)}
    print(json.dumps(found), flush=True)


def main(name: str, *command: str) -> None:
    """Do what is asked, one thing or many."""
    peer: Adapter = import_module(f"benchmarks.peers.{name}").Peer()
    try:
        for asked in [command] if command else map(json.loads, sys.stdin):
            answer(peer, *asked)
    finally:
        peer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
