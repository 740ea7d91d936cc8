"""
Workers that are restarted as soon as they end: forked from one process that has all loaded, so that a restart takes no time.

Run as a module, with how many to keep. The ids of those that are there now are in ``workers`` in the tests' folder. On SIGTERM
it starts no more, and ends when the last of them has.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from django.core.management import call_command

from tests.nursery import load

Workers = dict[int, int]  # Process id → number.


def keep(count: int) -> None:
    """Keep so many until told to stop."""
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    there: Workers = {}
    while not told or there:
        while not told and len(there) < count:
            number = min(set(range(count)) - set(there.values()))
            there[fork(number)] = number
            tell(there)
        if told:
            for pid in there:
                os.kill(pid, signal.SIGTERM)
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:
            del there[ended]
            tell(there)
            print(f"{ended} ended with {status}", flush=True)
        else:
            time.sleep(0.02)


def fork(number: int) -> int:
    """Start one; give its id."""
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    status = 1
    try:
        call_command("timeline_worker", name=f"worker {number}")
        status = 0
    finally:
        os._exit(status)


def tell(there: Workers) -> None:
    """Write down which are there."""
    file = Path(os.environ["TEST_FOLDER"]) / "workers"
    file.with_suffix(".new").write_text(" ".join(map(str, there)))
    file.with_suffix(".new").replace(file)


if __name__ == "__main__":
    load("manage")
    keep(int(sys.argv[1]))
