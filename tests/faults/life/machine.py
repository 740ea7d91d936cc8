"""The rule machine: people, polls, workers, a broker that loses and repeats, and deaths, in any order."""

from __future__ import annotations

import sys

from hypothesis.stateful import rule

from tests.faults.life.base import there
from tests.faults.life.chains import Chains
from tests.faults.life.mishaps import Mishaps
from tests.faults.world import wipe


class Life(Chains, Mishaps):
    """All steps, in any order; at the end all is worked off."""

    def teardown(self) -> None:
        """Work off what is open, if all went well, and leave nothing."""
        try:
            if sys.exc_info()[0] is None:
                self.work_off()
        finally:
            for block in (self._known, *reversed(self._around)):
                block.__exit__(None, None, None)
            wipe()

    @there
    @rule()
    def work_off(self) -> None:
        """Time passes and all is run, until nothing is open."""
        if self.away:
            self.deploy()
        for _ in range(60):
            self.step(self.rescue)
            self.step(self.poll)
            while self.box.messages:
                self.step(self.work, 0)
            ahead = [row.scheduled_at for row in self.model.rows.values() if row.is_open]
            if not ahead:
                return
            self.clock.now = max(self.clock.now, min(ahead))
        raise AssertionError("It does not come to rest.")
