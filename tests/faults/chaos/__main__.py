"""``python -m tests.faults.chaos``: one run; ends with 1 if there is a violation."""

from __future__ import annotations

import argparse
import sys

from tests.faults.chaos.fleet import FLEETS, SETTINGS
from tests.faults.chaos.running import run_chaos

SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.chaos", description="Work, faults, judgement.")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--over", choices=sorted(FLEETS), default="embedded")
    parser.add_argument("--settings", choices=sorted(SETTINGS), default="tuned", help="(default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep journals and logs, whatever comes")
    outcome = run_chaos(**vars(parser.parse_args()))
    for violation in outcome.violations[:SHOWN]:
        print(violation)
    if outcome.violations:
        print(f"Journals and logs are in {outcome.folder}.")
    print(outcome)
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
