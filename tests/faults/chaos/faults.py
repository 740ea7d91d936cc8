"""The faults, one function each: what it does, to whom, and what it writes down of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from tests.faults.chaos.fleet import STOPPING, Fleet

HOUR: Final = 3600.0
SILENCE: Final = 1.0  # Seconds: with a beat before and one after, less than a worker may be silent for.

Fault = Callable[[Fleet, random.Random], str]  # Says what was done.


def kill(fleet: Fleet, chance: random.Random) -> str:
    """SIGKILL, and start it again."""
    name = _anyone(fleet, chance)
    fleet.processes[name].kill()
    fleet.processes[name].restart()
    return name


def clock(fleet: Fleet, chance: random.Random) -> str:
    """SIGKILL of a worker, and start it again with a clock that is an hour ahead or behind, unless another one has such."""
    name, moved = chance.choice(fleet.at_hand(workers=True)), chance.choice([HOUR, -HOUR])
    if any(process.moved for process in fleet.processes.values()):
        moved = 0.0
    fleet.processes[name].kill()
    fleet.processes[name].restart(moved)
    return f"{name} {moved:+g} s"


def freeze(fleet: Fleet, chance: random.Random) -> str:
    """SIGSTOP until its leases have run out."""
    name = _anyone(fleet, chance)
    fleet.processes[name].freeze()
    fleet.later(name, fleet.silent + chance.uniform(0.5, 3), "thaw")
    return name


def terminate(fleet: Fleet, chance: random.Random) -> str:
    """SIGTERM, and start it again once it has stopped. Nothing that this may cost: it is no trouble."""
    name = _anyone(fleet, chance)
    fleet.processes[name].terminate()
    fleet.later(name, STOPPING, "stop")
    return name


def reset(fleet: Fleet, chance: random.Random) -> str:
    """Reset all connections of a process to the database."""
    name = _trouble(fleet, chance, "reset", 0.1)
    fleet.links[name].reset()
    return name


def delay(fleet: Fleet, chance: random.Random) -> str:
    """All that a process and the database say comes later, for a while."""
    name, seconds = _trouble(fleet, chance, "delay", 2), chance.uniform(0.05, 0.3)
    fleet.links[name].delay(seconds, 2)
    return f"{name} {seconds:.2f} s"


def silence(fleet: Fleet, chance: random.Random) -> str:
    """Nothing comes through between a process and the database, for a while; then its connections are reset."""
    name = _trouble(fleet, chance, "silence", SILENCE)
    fleet.links[name].silence(SILENCE)
    return name


def cut(fleet: Fleet, chance: random.Random) -> str:
    """The answers of a process's next commits are cut."""
    name, count = _trouble(fleet, chance, "cut", 10), chance.randint(1, 6)
    fleet.links[name].cut_commits(count)
    return f"{name} {count}"


def database(fleet: Fleet, chance: random.Random) -> str:
    """The database is killed, and started again."""
    since = time.time()
    fleet.site.postgres.kill()
    time.sleep(chance.uniform(0, 0.5))
    fleet.site.postgres.start()
    fleet.site.journal.trouble("database", 0, since, time.time())
    return f"{time.time() - since:.1f} s"


def wipe(fleet: Fleet, chance: random.Random) -> str:
    """The broker loses what it has."""
    if fleet.broker is not None:
        fleet.broker.wipe()
    return "broker"


def broker(fleet: Fleet, chance: random.Random) -> str:
    """The broker is killed, and started again, empty."""
    if fleet.broker is not None:
        fleet.broker.kill()
        time.sleep(chance.uniform(0, 0.5))
        fleet.broker.start()
    return "broker"


def broker_link(fleet: Fleet, chance: random.Random) -> str:
    """The connections to the broker are reset, or silent for a while."""
    if fleet.broker_link is not None:
        if chance.random() < 0.5:
            fleet.broker_link.silence(SILENCE)
        else:
            fleet.broker_link.reset()
    return "broker"


def double(fleet: Fleet, chance: random.Random) -> str:
    """Messages come twice."""
    return str(fleet.broker.double("faults.default", within=0.5)) if fleet.broker is not None else ""


COMMON: Final[list[Fault]] = [kill, kill, freeze, terminate, clock, reset, delay, silence, cut, cut, database]
FAULTS: Final[dict[str, list[Fault]]] = {
    "embedded": COMMON,
    "celery": [*COMMON, wipe, broker, broker_link, double, double],
}


def _anyone(fleet: Fleet, chance: random.Random) -> str:
    """Choose a process: a worker, mostly."""
    at_hand = fleet.at_hand(workers=chance.random() < 0.6) or fleet.at_hand()
    return chance.choice(at_hand)


def _trouble(fleet: Fleet, chance: random.Random, kind: str, seconds: float) -> str:
    """Choose a process, and write down what it has for so long."""
    name = _anyone(fleet, chance)
    since = time.time()
    fleet.site.journal.trouble(kind, fleet.processes[name].group, since, since + seconds)
    return name
