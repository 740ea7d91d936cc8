"""Prints the time that a process is told, and the time that it writes down."""

import time

from tests.faults.app import journal

if __name__ == "__main__":
    print(time.time(), journal.clock(), flush=True)
