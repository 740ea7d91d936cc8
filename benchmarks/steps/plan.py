"""What is measured, how often and how big: from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

KINDS: Final = {
    "steps": "plain",
    "step_updates": "with an UPDATE",
    "steps_async": "plain, async def",
}


class Measured(NamedTuple):
    """
    Who takes steps.

    Args:
        adapter: Its module in ``benchmarks.peers``.
        environment: Whose requirements it has there.
    """

    adapter: str
    environment: str


class Wanted(NamedTuple):
    """
    What is to be so many times as fast as something else.

    Args:
        what, than: Who, and which kind of steps.
        least: How many times.
    """

    what: tuple[str, str]
    than: tuple[str, str]
    least: float


PEERS: Final = {
    "timeline": Measured("timeline_steps", ""),
    "raw": Measured("raw_steps", ""),
    "dbos": Measured("dbos", "dbos"),
    "absurd": Measured("absurd", "absurd"),
}
GOALS: Final = (
    Wanted(("timeline", "steps"), ("raw", "steps"), 0.8),
    Wanted(("timeline", "step_updates"), ("raw", "step_updates"), 0.8),
    Wanted(("timeline", "steps"), ("dbos", "steps"), 2),
    Wanted(("timeline", "step_updates"), ("dbos", "step_updates"), 3),
    Wanted(("timeline", "steps_async"), ("timeline", "steps"), 3),
)
MOST_BYTES: Final = 250


@dataclass(frozen=True, kw_only=True)
class Plan:
    """
    One whole measurement.

    Args:
        peers: Names of ``PEERS``, in the order of a round.
        kinds: Names of ``KINDS``.
        tasks: How many are worked off, of each kind: four steps each.
        rounds: How often each figure is taken. In a round, each kind is measured of each peer, one after the other.
        shortest: Seconds that a drain must take to count; what is over sooner is done again, with more tasks.
        kill: Whether a worker of ours is killed in the middle of a task, too, to see how long until another goes on.
        output: File for the figures; None: they are printed only.
    """

    peers: tuple[str, ...] = tuple(PEERS)
    kinds: tuple[str, ...] = tuple(KINDS)
    tasks: int = 2_000
    rounds: int = 5
    shortest: float = 1.0
    kill: bool = False
    output: Path | None = None


def parse(arguments: Sequence[str]) -> Plan:
    """
    Read the command line.

    Args:
        arguments: Without the program's name.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__)
    parser.add_argument("--tasks", type=_positive, default=Plan.tasks, help="of four steps each (%(default)s)")
    parser.add_argument("--rounds", type=_positive, default=Plan.rounds, help="how often all is measured (%(default)s)")
    parser.add_argument("--only", type=_peers, default=Plan.peers, metavar="NAME,…", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--kinds", type=_kinds, default=Plan.kinds, metavar="KIND,…", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--shortest", type=float, default=Plan.shortest, help="seconds that a drain must take to count")
    parser.add_argument("--kill", action="store_true", help="kill a worker in the middle of a task, too: a minute more")
    parser.add_argument("--json", type=Path, metavar="FILE", help="for all figures; left out, they are printed only")
    given = parser.parse_args(arguments)
    chosen = vars(given)
    return Plan(peers=chosen.pop("only"), output=chosen.pop("json"), **chosen)


def _positive(text: str) -> int:
    number = int(text.replace("_", ""))
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _peers(text: str) -> tuple[str, ...]:
    return _known(text, PEERS)


def _kinds(text: str) -> tuple[str, ...]:
    return _known(text, KINDS)


def _known(text: str, known: Mapping[str, object]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if unknown := sorted(set(names) - set(known)):
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is none of {', '.join(known)}")
    return names
