"""
The rule machine: people, polls, workers, a broker that loses and repeats, and deaths, in any order; a dict says what may be.

``STATEFUL_EXAMPLES`` and ``STATEFUL_STEPS`` make it larger; without them it is the same each time.
"""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.faults.world import FAILING, Born, Box, Clock, World, check, let_leases_run_out, new_orders, wipe
from tests.testapp.models import Order
from timeline.exceptions import AlreadyOpen, RunEnded
from timeline.lifecycle import FINAL, OPEN, Reason
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.cancelling import cancel
from timeline.operations.dispatching import dispatch
from timeline.operations.moving import move
from timeline.operations.pruning import prune
from timeline.operations.redriving import redrive
from timeline.operations.rescuing import rescue
from timeline.operations.running import begin_given, run
from timeline.shortcuts import emit, schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = int(os.environ.get("STATEFUL_EXAMPLES", "12"))
STEPS = int(os.environ.get("STATEFUL_STEPS", "25"))
KINDS = [f"world.{name}" for name in World.__dict__ if name in ("ship", "mail", "share", "bulk", "call", "extra")]
WHY = Reason.operator("because")
which = st.integers(min_value=0, max_value=10_000)


class Life(RuleBasedStateMachine):
    """
    Two orders, and what may happen to them.

    ``model``: id of a task → its state. ``said``: what the last step made of it, one of these states. What ended stays as it
    ended; where a step touches nothing else, all others rest.
    """

    def __init__(self) -> None:
        super().__init__()
        wipe()
        self.clock, self.box = Clock(), Box()
        self.orders = new_orders(2)
        self.model: dict[object, str] = {}
        self.said: dict[object, set[str]] = {}
        self.others_rest = False
        self.open_runs: dict[str, bool] = {str(order.pk): False for order in self.orders}
        self.keys = 0
        self.away = False
        self._told = self.clock.told()
        self._told.__enter__()
        self._known = only_timelines(World, Born)
        self._known.__enter__()

    def teardown(self) -> None:
        self._known.__exit__(None, None, None)
        self._told.__exit__(None, None, None)
        wipe()

    def tasks(self, *states: str) -> list[ScheduledTask]:
        return list(ScheduledTask.objects.filter(state__in=states).order_by("pk"))

    def pick(self, number: int, *states: str) -> ScheduledTask | None:
        found = self.tasks(*states)
        return found[number % len(found)] if found else None

    def expect(self, task: ScheduledTask, *states: str) -> None:
        self.said[task.pk] = set(states)

    @precondition(lambda self: not self.away)
    @rule(number=which)
    def emit(self, number: int) -> None:
        """An event starts a run, unless one is open."""
        order = self.orders[number % 2]
        started = emit("order.placed", order).started
        assert bool(started) is not self.open_runs[str(order.pk)]
        self.open_runs[str(order.pk)] = True

    @precondition(lambda self: not self.away)
    @rule(number=which)
    def exit(self, number: int) -> None:
        """An event ends it, and whatever of it is open."""
        order = self.orders[number % 2]
        mine = self.tasks(*OPEN)
        ended = emit("order.closed", order).ended
        assert bool(ended) is self.open_runs[str(order.pk)]
        self.open_runs[str(order.pk)] = False
        for task in mine:
            if task.run_id is not None and task.entity_id == str(order.pk):
                self.expect(task, "cancelled")

    @precondition(lambda self: not self.away)
    @rule(number=which, days=st.integers(min_value=-1, max_value=5))
    def schedule(self, number: int, days: int) -> None:
        """One task ad hoc; the same key again makes no other."""
        self.keys += 1
        self.others_rest = True
        given = {"at": self.clock.now + timedelta(days=days), "key": str(self.keys)}
        made = schedule("world.extra", self.orders[number % 2], **given)
        assert made.created
        assert not schedule("world.extra", self.orders[number % 2], **given).created
        self.expect(made.task, "scheduled" if days > 0 else "available")

    @precondition(lambda self: not self.away)
    @rule(number=which)
    def cancel(self, number: int) -> None:
        """Whatever is open can be called off."""
        if task := self.pick(number, *OPEN):
            self.others_rest = True
            cancel(task_ids=[task.pk], reason=WHY, now=self.clock.now, using="default")
            self.expect(task, "cancelled")

    @rule(number=which, days=st.integers(min_value=0, max_value=5))
    def move(self, number: int, days: int) -> None:
        """What waits is moved in place; what is further goes on as its next revision."""
        if task := self.pick(number, *OPEN):
            self.others_rest = True
            at = self.clock.now + timedelta(days=days)
            [moved] = move(task_ids=[task.pk], at=at, reason=WHY, now=self.clock.now, using="default")
            if moved.pk == task.pk:
                self.expect(task, task.state)
            else:
                self.expect(task, "cancelled")
                self.expect(moved, "scheduled" if days else "available")
            assert moved.scheduled_at == at

    @precondition(lambda self: not self.away)
    @rule(number=which)
    def redrive(self, number: int) -> None:
        """What has ended runs again, unless its run ended by an exit or it goes on already."""
        task = self.pick(number, *FINAL)
        if task is None:
            return
        try:
            [again] = redrive(task_ids=[task.pk], reason=WHY, now=self.clock.now, using="default")
        except (AlreadyOpen, RunEnded):
            return
        assert again.previous_id is not None

    @rule(hours=st.sampled_from([1, 24, 49, 120]))
    def wait(self, hours: int) -> None:
        """Time passes."""
        self.others_rest = True
        self.clock.now += timedelta(hours=hours)

    @rule()
    def poll(self) -> None:
        """What is due goes on its way."""
        dispatch(sender=self.box, now=self.clock.now, using="default")

    @precondition(lambda self: self.box.messages)
    @rule(number=which)
    def work(self, number: int) -> None:
        """A worker takes a message, whichever it is."""
        batch = self.box.messages.pop(number % len(self.box.messages))
        run(task_ids=batch.task_ids, token=batch.token, clock=self.clock, using="default", worker="w")

    @precondition(lambda self: self.box.messages)
    @rule(number=which)
    def crash(self, number: int) -> None:
        """A worker takes a message, begins, and is never heard of again."""
        batch = self.box.messages.pop(number % len(self.box.messages))
        for attempts in begin_given(task_ids=batch.task_ids, token=batch.token, clock=self.clock, using="default"):
            for attempt in attempts:
                self.expect(attempt.task, "active")

    @precondition(lambda self: self.box.messages)
    @rule(number=which, lose=st.booleans())
    def lose_or_repeat(self, number: int, lose: bool) -> None:
        """The broker loses a message, or brings it twice."""
        self.others_rest = True
        place = number % len(self.box.messages)
        if lose:
            self.box.messages.pop(place)
        else:
            self.box.messages.append(self.box.messages[place])

    @precondition(lambda self: not self.away)
    @rule()
    def rescue(self) -> None:
        """Whoever had something was not heard of."""
        lost = self.tasks("active")
        let_leases_run_out()
        rescue(now=self.clock.now, using="default")
        for task in lost:
            self.expect(task, "retryable", "discarded")

    @rule(kind=st.sampled_from(KINDS))
    def fail(self, kind: str) -> None:
        """From now on this handler raises, or does not any more."""
        self.others_rest = True
        FAILING.symmetric_difference_update({kind})

    @rule()
    def deploy(self) -> None:
        """The timeline is taken out of the code, or put back: its rows rest meanwhile."""
        self.others_rest = True
        self._known.__exit__(None, None, None)
        self.away = not self.away
        self._known = only_timelines(Born) if self.away else only_timelines(World, Born)
        self._known.__enter__()

    @rule(number=which, days=st.integers(min_value=0, max_value=6))
    def save(self, number: int, days: int) -> None:
        """A date of the entity moves what waits for it."""
        order = Order.objects.get(pk=self.orders[number % 2].pk)
        order.ships_at = self.clock.now + timedelta(days=days)
        order.save()

    @rule()
    def prune(self) -> None:
        """What ended long ago goes, and nothing that is open."""
        before = {task.pk for task in self.tasks(*OPEN)}
        prune(ended_before=self.clock.now - timedelta(days=1), using="default")
        assert {task.pk for task in self.tasks(*OPEN)} == before
        there = set(ScheduledTask.objects.values_list("pk", flat=True))
        self.model = {pk: state for pk, state in self.model.items() if pk in there}

    @invariant()
    def holds(self) -> None:
        """The tables are sound, and each task is where the model has it."""
        check()
        now = dict(ScheduledTask.objects.values_list("pk", "state"))
        for pk, states in self.said.items():
            assert now[pk] in states, f"{pk} is {now[pk]}, not {states}"
        for pk, state in self.model.items():
            if state in FINAL or (self.others_rest and pk not in self.said):
                assert now.get(pk) == state, f"{pk} was {state} and is {now.get(pk)}"
        self.model, self.said, self.others_rest = now, {}, False
        open_now = set(TimelineRun.objects.filter(timeline="world", ended_at=None).values_list("entity_id", flat=True))
        self.open_runs = {entity: entity in open_now for entity in self.open_runs}


class TestLife:
    def test_is_as_the_model_says(self):
        large = "STATEFUL_EXAMPLES" in os.environ
        run_state_machine_as_test(
            Life,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                derandomize=not large,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
