"""``python -m tests.faults.check``: judge a database and journals; ends with 1 if there is a violation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.faults.check.judging import counted, judge, read_history, recoveries, shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.check", description="Judge what became of the work.")
    parser.add_argument("--database", required=True, help="postgresql://… or sqlite:///path")
    parser.add_argument("--journal", required=True, type=Path, help="folder of the journals, *.jsonl")
    parser.add_argument("--slack", type=float, default=0.0, help="seconds a busy machine may keep a process waiting")
    given = parser.parse_args()
    history = read_history(given.database, given.journal)
    for name, value in counted(history).items():
        print(f"{name}: {value}")
    print(f"recovery after a kill: {shown(recoveries(history))}")
    violations = judge(history, slack=given.slack)
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
