"""Steps that seldom come in this order by chance."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.faults.life.base import days, there, which, with_messages
from tests.faults.life.people import People
from tests.faults.life.workers import Workers
from timeline.exceptions import TransitionNotAllowed
from timeline.operations.cancel import cancel


class Chains(People, Workers):
    """Several steps, one after the other."""

    @there
    @rule(number=which)
    def prune_beside(self, number: int) -> None:
        """One of a kind goes on, and what ended before it stays with it."""
        self.step(self.schedule, number, 1)
        row = next(row for row in reversed(self.model.rows.values()) if row.occurrence == str(self.keys))
        self.step(self.refused, True, TransitionNotAllowed, cancel, row)
        self.step(self.wait, 1)
        self.step(self.redrive, list(self.model.rows).index(row.pk))
        self.step(self.wait, 1)
        self.prune(0)

    @there
    @rule(number=which, times=st.integers(min_value=1, max_value=4), wakes=st.booleans())
    def kill(self, number: int, times: int, wakes: bool) -> None:
        """A task kills its worker, several times; or the first of them was only frozen, and wakes up meanwhile."""
        row, first = self.pick(number, is_open=True), len(self.asleep)
        for _ in range(times if row else 0):
            self.clock.now = max(self.clock.now, row.scheduled_at)
            self.step(self.rescue)
            self.step(self.poll)
            mine = [place for place, batch in enumerate(self.box.messages) if row.pk in batch.task_ids]
            if not mine or not self.is_open(row):
                break
            self.step(self.freeze, mine[-1])
        if wakes and self.asleep[first:]:
            self.step(self.wake, first)

    @there
    @rule(number=which)
    def overtake(self, number: int) -> None:
        """A worker wakes up while another one runs what was its own."""
        self.kill(number, times=2, wakes=True)

    @there
    @rule(number=which)
    def leave_what_is_due(self, number: int) -> None:
        """A poll dies when it has seen what is due, and before the next one an event ends the run."""
        self.step(self.emit, number)
        self.step(self.wait, 49)
        self.step(self.stage)
        self.step(self.exit, number)

    @there
    @rule(number=which, days=days)
    def postpone(self, number: int, days: int) -> None:
        """A date is saved while all of a run still waits, and one of its tasks is moved."""
        self.step(self.exit, number)
        self.step(self.emit, number)
        self.step(self.save, number, days, True)
        waiting = [place for place, row in enumerate(self.open_rows()) if row.state == "scheduled"]
        self.step(self.move, waiting[-1], 6 - days)

    @there
    @rule(number=which, days=days)
    def change_unseen(self, number: int, days: int) -> None:
        """A date is saved past signals: what waits for the old one comes due, and is refused then."""
        self.step(self.exit, number)
        self.step(self.emit, number)
        self.step(self.save, number, days, False)

    @there
    @rule(number=which)
    def redrive_too_early(self, number: int) -> None:
        """What has not ended is not redriven."""
        self.step(self.emit, number)
        rows = list(self.model.rows.values())
        self.step(self.redrive, rows.index(self.open_rows()[-1]))

    @with_messages
    @there
    @rule(number=which)
    def cancel_running(self, number: int) -> None:
        """A task is called off while its handler is on its way, which must leave nothing."""
        self.step(self.freeze, number)
        active = [row for row in self.model.rows.values() if row.state == "active"]
        if active and self.asleep:
            row = active[number % len(active)]
            self.step(self.refused, True, TransitionNotAllowed, cancel, row)
            self.step(self.wake, len(self.asleep) - 1)
