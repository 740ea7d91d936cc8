"""
``python -m tests.faults.chaos.seeds``: many seeds, by turns over Celery and embedded; those that passed are left out next time.

What each came to is kept in ``.chaos/``, by seed and size, so that they may be run in pieces.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tests.faults.chaos.fleet import SETTINGS
from tests.faults.chaos.running import Outcome, run_chaos
from tests.faults.check.judging import shown
from tests.faults.harness.roles import ROOT

KEPT: Final = ROOT / ".chaos"
SHOWN: Final = 10


def numbers(text: str) -> list[int]:
    """Numbers as people write them: ``1-4,9``."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def over_of(seed: int) -> str:
    """Odd seeds go over Celery, even ones are embedded."""
    return "celery" if seed % 2 else "embedded"


def settings_of(seed: int) -> str:
    """Of four seeds two have the default settings, one over each."""
    return "default" if seed % 4 in (1, 2) else "tuned"


def kept(seed: int, tasks: int) -> Path:
    """Where its outcome is kept."""
    return KEPT / f"{tasks}-{seed}.json"


def passed(seed: int, tasks: int) -> bool:
    """Whether it has been run, and nothing was wrong."""
    path = kept(seed, tasks)
    return path.exists() and not json.loads(path.read_text())["violations"]


def keep(outcome: Outcome, tasks: int) -> None:
    """Write down what it came to."""
    KEPT.mkdir(exist_ok=True)
    kept(outcome.seed, tasks).write_text(json.dumps({**asdict(outcome), "line": str(outcome)}, default=str))


def summary(outcomes: list[dict[str, Any]]) -> str:
    """One line about all of them."""
    recovery = "; ".join(
        f"{settings}: {shown(sorted(times))}"
        for settings in SETTINGS
        if (times := [time for one in outcomes if one["settings"] == settings for time in one["recovery"]])
    )
    tasks = sum(outcome["tasks"] for outcome in outcomes)
    faults = sum(sum(outcome["faults"].values()) for outcome in outcomes)
    violations = sum(len(outcome["violations"]) for outcome in outcomes)
    return f"{len(outcomes)} seeds: {tasks} tasks, {faults} faults, recovery {recovery}, {violations} violations"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.chaos.seeds", description=__doc__)
    parser.add_argument("--seeds", type=numbers, default=numbers("1-20"), help="for example 1-4,9 (default: 1-20)")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--settings", choices=sorted(SETTINGS), help="default: by turns, two seeds each")
    given = parser.parse_args()
    for seed in given.seeds:
        if passed(seed, given.tasks):
            continue
        outcome = run_chaos(
            tasks=given.tasks,
            seconds=given.seconds,
            seed=seed,
            over=over_of(seed),
            settings=given.settings or settings_of(seed),
        )
        for violation in outcome.violations[:SHOWN]:
            print(violation)
        print(outcome, flush=True)
        keep(outcome, given.tasks)
    outcomes = [json.loads(kept(seed, given.tasks).read_text()) for seed in given.seeds]
    for outcome in outcomes:
        print(outcome["line"])
    print(summary(outcomes))
    return 1 if any(outcome["violations"] for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
