"""What polls and workers do, also those that die, and those that were only frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.faults.life.base import Base, there, which, with_messages
from tests.faults.life.model import WAITING, Row, failed, lost
from tests.faults.world import CALLS, FAILING, let_leases_run_out, let_messages_grow_old
from tests.testapp.models import Order
from timeline.dispatch.claim import ClaimedBatch, messages_of
from timeline.dispatch.poll import dispatch, stage
from timeline.dispatch.rescue import rescue
from timeline.engine.groups import begin_given, run, run_begun
from timeline.models import ScheduledTask


class Workers(Base):
    """Steps of time, of polls and of workers."""

    @rule(hours=st.sampled_from([1, 24, 49, 120]))
    def wait(self, hours: int) -> None:
        """Time passes."""
        self.clock.now += timedelta(hours=hours)

    @rule()
    def stage(self) -> None:
        """A poll dies when it has seen what is due."""
        for row in self.due(*WAITING):
            self.model.expect(row.pk, {"state": "available"})
        stage(**self.given)

    def due(self, *states: str) -> list[Row]:
        return [row for row in self.model.rows.values() if row.state in states and row.scheduled_at <= self.clock.now]

    @rule()
    def poll(self) -> None:
        """Polls send what is due on its way, in one message each: as many polls as that takes, as there is a limit to each."""
        due = self.due("available", *WAITING)
        for row in due:
            self.model.expect(row.pk, {"state": "available" if self.away else "pending"})
        known = len(self.box.messages)
        for _ in range(1 + len(due)):
            let_messages_grow_old()
            dispatch(sender=self.box, **self.given)
            if self.away or not ScheduledTask.objects.filter(state="available").exists():
                break
        sent = Counter(pk for batch in self.box.messages[known:] for pk in batch.task_ids)
        assert sent == Counter([] if self.away else [row.pk for row in due]), "polls sent something else than was due"

    @with_messages
    @rule(number=which)
    def work(self, number: int) -> None:
        """A worker takes a message, whichever it is."""
        batch = self.box.messages.pop(number % len(self.box.messages))
        rows = self.startable(batch)
        self.model.touch(rows)
        runs = self.ends(rows)
        run(task_ids=batch.task_ids, token=batch.token, clock=self.clock, using="default", worker="w")
        self.see_calls(((row.pk, row.attempt + 1) for row in runs), others=any(row.task_key in FAILING for row in runs))

    @with_messages
    @rule(number=which, twice=st.booleans())
    def freeze(self, number: int, twice: bool = False) -> None:
        """A worker takes a message, begins, and is not heard of for long, or ever; the message may come twice."""
        if twice:
            copy = self.box.messages[number % len(self.box.messages)]
            self.step(self.freeze, number)
            self.box.messages.append(copy)
            self.work(len(self.box.messages) - 1)
            return
        batch = self.box.messages.pop(number % len(self.box.messages))
        for row in self.startable(batch):
            self.model.expect(row.pk, {"state": "active", "attempt": row.attempt + 1})
        begun = begin_given(task_ids=batch.task_ids, token=batch.token, clock=self.clock, using="default", worker="w")
        self.asleep += [attempts for attempts in begun if attempts]

    @there
    @precondition(lambda self: self.asleep)
    @rule(number=which)
    def wake(self, number: int) -> None:
        """One that was not heard of goes on where it was: what is its own no more stays as it is."""
        attempts = self.asleep.pop(number % len(self.asleep))
        begun = {attempt.task.pk: attempt.task.attempt for attempt in attempts}
        ours = [row for row in self.model.rows.values() if row.state == "active" and row.attempt == begun.get(row.pk)]
        self.model.touch(ours)
        self.ends(ours)
        run_begun(attempts, clock=self.clock, using="default")
        self.see_calls([], others=True)

    @there
    @rule()
    def rescue(self) -> None:
        """Whoever had something was not heard of; what nobody took is sent again."""
        rows = self.model.rows.values()
        for row in rows:
            if row.state == "active":
                self.model.expect(row.pk, lost(row, self.clock.now))
        self.model.touch(row for row in rows if row.state == "active")
        let_leases_run_out()
        again = rescue(**self.given).resend
        assert {task.pk for task in again} == {row.pk for row in rows if row.state == "pending"}
        for batch in messages_of(again):
            self.box.send(batch, using="default")

    def startable(self, batch: ClaimedBatch) -> list[Row]:
        """Those of a message that a worker may start."""
        rows = [self.model.rows[pk] for pk in batch.task_ids if pk in self.model.rows and not self.away]
        return [
            row
            for row in rows
            if row.state == "available"
            or (row.state == "pending" and row.claim_token == batch.token)
            or (row.state in WAITING and row.scheduled_at <= self.clock.now)
        ]

    def ends(self, rows: Iterable[Row]) -> list[Row]:
        """Say how these will end that are run now; give those whose handlers are entered."""
        dates = {str(pk): ships_at for pk, ships_at in Order.objects.values_list("pk", "ships_at")}
        runs = []
        for row in rows:
            tried = {"attempt": row.attempt + (row.state != "active")}
            if row.task_key == "world.ship" and row.anchor_value != dates[row.entity_id]:
                self.model.expect(row.pk, tried | {"state": "cancelled", "reason_code": "superseded"})
                continue
            runs.append(row)
            ways = [tried | {"state": "completed", "reason_code": "done"}]
            if row.task_key in FAILING:
                counts = (True, False) if row.task_key == "world.bulk" else (True,)
                ways = [failed(row, self.clock.now, counted=counted) for counted in counts]
            self.model.expect(row.pk, *ways)
        return runs

    def see_calls(self, wanted: Iterable[tuple[object, int]], *, others: bool = False) -> None:
        """Those handlers were entered since the last time, once each; each in time, and for what is still true."""
        calls, self.called = CALLS[self.called :], len(CALLS)
        assert not [call for call in calls if call.at < call.due_at or call.stale]
        told = Counter((call.task_id, call.attempt) for call in calls)
        if not others:
            seen = Counter(wanted)
            names = [self.model.rows[pk] for pk, _attempt in (told - seen) | (seen - told)]
            assert told == seen, f"other handlers were entered than should be: {told} of {names}"
