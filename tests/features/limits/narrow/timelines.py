"""Timelines with limits that worker processes of the tests run."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from tests.testapp.models import Order
from tests.testapp.timelines import CrashCase
from timeline import Limit, Timeline, task


class NarrowCase(Timeline):
    """Waits for leave to go on, or says when it is entered and left, while it holds a place."""

    entity = "testapp.Order"
    write_and_wait = CrashCase.write_and_wait

    @task(atomic=False, limit=1)
    def alone(self, order: Order) -> dict[str, bool]:
        return self.write_and_wait()

    @task(atomic=False, limit=Limit(1, "to_the_end", until="end"))
    def alone_to_the_end(self, order: Order) -> dict[str, bool]:
        return self.write_and_wait()

    @task(atomic=False, limit=Limit(1, by="note"))
    def one_a_note(self, order: Order) -> None:
        """Write a line as it is entered, and one as it is left: which process, for what, and when."""
        for what in ("in", "out"):
            line = json.dumps({"what": what, "pid": os.getpid(), "note": order.note, "at": time.time()})
            with (Path(os.environ["TEST_FOLDER"]) / "inside").open("a") as inside:
                inside.write(f"{line}\n")
            time.sleep(0.02)
