"""What goes wrong, and what is kept up: messages lost and doubled, handlers that raise, deploys, and what is deleted."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.faults.life.base import Base, which, with_messages
from tests.faults.life.model import Row
from tests.faults.world import FAILING, Born, World
from timeline.features.maintenance.prune import prune
from timeline.testing import only_timelines

KINDS = [f"world.{name}" for name in ("ship", "mail", "share", "bulk", "call", "extra")]


class Mishaps(Base):
    """Steps of nobody in particular."""

    @with_messages
    @rule(number=which, lose=st.booleans())
    def lose_or_repeat(self, number: int, lose: bool) -> None:
        """The broker loses a message, or brings it twice."""
        place = number % len(self.box.messages)
        if lose:
            self.box.messages.pop(place)
        else:
            self.box.messages.append(self.box.messages[place])

    @rule(kind=st.sampled_from(KINDS))
    def fail(self, kind: str) -> None:
        """From now on this handler raises, or does not any more."""
        FAILING.symmetric_difference_update({kind})

    @rule()
    def deploy(self) -> None:
        """The timeline is taken out of the code, or put back: its rows rest meanwhile."""
        self._known.__exit__(None, None, None)
        self.away = not self.away
        self._known = only_timelines(Born) if self.away else only_timelines(World, Born)
        self._known.__enter__()

    @rule(days=st.sampled_from([0, 1, 7]))
    def prune(self, days: int) -> None:
        """What ended long ago goes whole, and nothing else."""
        before = self.clock.now - timedelta(days=days)
        runs = {run.pk for run in self.model.runs.values() if run.ended_at and run.ended_at < before}
        tasks = {row.pk for row in self.model.rows.values() if self._has_ended(row, runs, before)}
        self.model.gone = tasks, runs
        counts = prune(ended_before=before, using="default")
        assert (counts.tasks, counts.runs) == (len(tasks), len(runs))

    def _has_ended(self, row: Row, runs: set[object], before: datetime) -> bool:
        if row.run_id is not None:
            return row.run_id in runs
        return all(other.finished_at and other.finished_at < before for other in self.model.same(row))
