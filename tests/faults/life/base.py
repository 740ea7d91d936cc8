"""What all steps share: the orders, the clock, the box of messages, and the model that each step is compared with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.test import override_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition

from tests.faults.life.model import Model, Row
from tests.faults.world import Born, Box, Clock, World, check, new_orders, wipe
from timeline.engine.groups import Attempt
from timeline.testing import only_timelines

which = st.integers(min_value=0, max_value=10_000)
days = st.integers(min_value=0, max_value=6)
there = precondition(lambda self: not self.away)
with_messages = precondition(lambda self: self.box.messages)


class Base(RuleBasedStateMachine):
    """Two orders, and what all steps share. Each step says what it makes of which row."""

    def __init__(self) -> None:
        super().__init__()
        wipe()
        self.clock, self.box, self.model = Clock(), Box(), Model()
        self.orders = new_orders(2)
        self.asleep: list[list[Attempt]] = []
        self.keys = self.called = 0
        self.away = False
        self._around = [
            self.clock.told(),
            override_settings(
                TIMELINE={**settings.TIMELINE, "LEASE": timedelta(hours=1), "POLL_INTERVAL": timedelta(seconds=30)}
            ),
        ]
        self._known = only_timelines(World, Born)
        for block in (*self._around, self._known):
            block.__enter__()

    @invariant()
    def holds(self) -> None:
        """The tables are sound, and each row is where the model has it."""
        self.model.compare(self.clock.now, check())

    @property
    def given(self) -> dict[str, object]:
        return {"now": self.clock.now, "using": "default"}

    def open_rows(self) -> list[Row]:
        """The tasks that have not ended."""
        return [row for row in self.model.rows.values() if row.is_open]

    def pick(self, number: int, *, is_open: bool = False) -> Row | None:
        """One of the tasks there are; ``is_open``: of those that have not ended."""
        found = self.open_rows() if is_open else list(self.model.rows.values())
        return found[number % len(found)] if found else None

    def is_open(self, row: Row) -> bool:
        """Whether it has not ended by now."""
        return self.model.rows[row.pk].is_open

    def step(self, act: Callable[..., None], *given: object) -> None:
        """One of the steps above, with all that is looked at after it."""
        act(*given)
        self.holds()
