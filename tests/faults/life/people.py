"""What people do: events, dates that are saved, and decisions about a task."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.faults.life.base import Base, days, there, which
from tests.faults.life.model import WAITING, Row
from tests.testapp.models import Order
from timeline.exceptions import AlreadyOpen, RunEnded, TimelineError, TransitionNotAllowed
from timeline.lifecycle import Reason
from timeline.operations.cancel import cancel
from timeline.operations.move import move, run_now
from timeline.operations.redrive import redrive
from timeline.shortcuts import emit, schedule

WHY = Reason.operator("because")
OPERATOR = {"state": "cancelled", "reason_code": "operator"}


class People(Base):
    """Steps of people."""

    @initialize(number=which)
    def begin(self, number: int) -> None:
        """No life is empty."""
        self.step(self.emit, number)
        self.step(self.schedule, number, 0)
        self.step(self.poll)

    @there
    @rule(number=which)
    def emit(self, number: int) -> None:
        """An event starts a run, unless one is open."""
        order = self.orders[number % 2]
        is_open = self.model.open_run(str(order.pk)) is not None
        if not is_open:
            self.model.starts.add(str(order.pk))
        assert bool(emit("order.placed", order).started) is not is_open

    @there
    @rule(number=which)
    def exit(self, number: int) -> None:
        """An event ends it, and whatever of it is open."""
        order = self.orders[number % 2]
        ending = self.model.open_run(str(order.pk))
        self.model.closed |= {run.pk for run in self.model.runs.values() if run.entity_id == str(order.pk)}
        if ending is not None:
            self.model.exited.add(ending.pk)
            for row in self.model.rows.values():
                if row.run_id == ending.pk and row.is_open:
                    self.model.expect(row.pk, {"state": "cancelled", "reason_code": "exit"})
        assert [run.pk for run in emit("order.closed", order).ended] == ([ending.pk] if ending else [])

    @there
    @rule(number=which, days=st.integers(min_value=-1, max_value=5))
    def schedule(self, number: int, days: int) -> None:
        """One task ad hoc; the same key again makes no other."""
        self.keys += 1
        at = self.clock.now + timedelta(days=days)
        given = {"at": at, "key": str(self.keys)}
        made = schedule("world.extra", self.orders[number % 2], **given)
        assert made.created
        assert not schedule("world.extra", self.orders[number % 2], **given).created
        self.model.expect(made.task.pk, {"state": "scheduled" if days > 0 else "available", "scheduled_at": at})

    @there
    @rule(number=which)
    def cancel(self, number: int) -> None:
        """Whatever is open can be called off; what has ended cannot."""
        if row := self.pick(number):
            self.refused(row.is_open, TransitionNotAllowed, cancel, row)

    def refused(self, allowed: bool, error: type[TimelineError], act: Callable[..., object], row: Row) -> None:
        """Do this to a row, which ends it; or see that it is not allowed."""
        if not allowed:
            with pytest.raises(error):
                act(task_ids=[row.pk], reason=WHY, **self.given)
            return
        self.model.touch([row])
        self.model.expect(row.pk, OPERATOR)
        act(task_ids=[row.pk], reason=WHY, **self.given)

    @rule(number=which, days=days)
    def move(self, number: int, days: int) -> None:
        """What waits is moved in place; what is further goes on as its next revision."""
        if row := self.pick(number, is_open=True):
            at = self.clock.now + timedelta(days=days)
            [moved] = move(task_ids=[row.pk], at=at, reason=WHY, **self.given)
            if row.state in WAITING:
                assert moved.pk == row.pk
                self.model.expect(row.pk, {"scheduled_at": at})
            else:
                self.model.expect(row.pk, {"state": "cancelled", "reason_code": "moved"})
                self.expect_revision(moved.pk, row, state="scheduled" if days else "available", scheduled_at=at)

    def expect_revision(self, pk: object, row: Row, **columns: object) -> None:
        same = {name: getattr(row, name) for name in ("run_id", "entity_id", "task_key", "occurrence")}
        latest = self.model.same(row)[-1]
        self.model.expect(pk, same | {"revision": latest.revision + 1} | columns)

    @there
    @rule(number=which)
    def run_now(self, number: int) -> None:
        """What waits is due at once."""
        waiting = [row for row in self.model.rows.values() if row.state in WAITING]
        if waiting:
            row = waiting[number % len(waiting)]
            self.model.expect(row.pk, {"state": "available", "scheduled_at": min(self.clock.now, row.scheduled_at)})
            run_now(task_ids=[row.pk], reason=WHY, **self.given)

    @there
    @rule(number=which)
    def redrive(self, number: int) -> None:
        """What has ended runs again, unless it goes on already, or an exit came since, or its run has a successor."""
        row = self.pick(number)
        if row is None:
            return
        error = self._refusal(row)
        if error is not None:
            with pytest.raises(error):
                redrive(task_ids=[row.pk], reason=WHY, **self.given)
            return
        self.model.touch([row])
        [again] = redrive(task_ids=[row.pk], reason=WHY, **self.given)
        self.expect_revision(again.pk, row, state="available", scheduled_at=self.clock.now)

    def _refusal(self, row: Row) -> type[TimelineError] | None:
        """Why a task cannot be redriven."""
        if row.is_open:
            return TransitionNotAllowed
        if self.model.same(row)[-1].is_open:
            return AlreadyOpen
        if row.run_id in self.model.closed:
            return RunEnded
        other = self.model.open_run(row.entity_id) if row.run_id else None
        return AlreadyOpen if other and other.pk != row.run_id else None

    @rule(number=which, days=days, seen=st.booleans())
    def save(self, number: int, days: int, seen: bool) -> None:
        """A date of the entity moves what waits for it; past signals, nothing moves before it is its time."""
        order = Order.objects.get(pk=self.orders[number % 2].pk)
        order.ships_at = self.clock.now + timedelta(days=days)
        if not seen or self.away:
            Order.objects.filter(pk=order.pk).update(ships_at=order.ships_at)
            return
        own = self.model.open_run(str(order.pk))
        if own is None:
            self.step(self.emit, number)
            own = self.model.open_run(str(order.pk))
        mine = [row for row in self.model.rows.values() if own and row.run_id == own.pk]
        self.model.touch(mine)
        order.save()
        self.holds()
        dates = {
            self.model.rows[row.pk].anchor_value for row in mine if row.task_key == "world.ship" and self.is_open(row)
        }
        assert dates <= {order.ships_at}
