"""
Races, a thousand rounds each: two things happen to the same row at the same moment, and it is as if one came after the other.

Each says how often which came first; a race that only one side ever wins is none.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction

from tests.faults.duels import duel
from tests.faults.world import START, Clock, World, check, new_orders, wipe
from tests.testapp.models import Effect, Order
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import Reason, State
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.operations.cancelling import cancel
from timeline.operations.claiming import claim
from timeline.operations.emitting import emit
from timeline.operations.moving import move
from timeline.operations.pruning import prune
from timeline.operations.redriving import redrive
from timeline.operations.running import Watch, begin_given, run, run_begun
from timeline.operations.scheduling import schedule
from timeline.operations.staging import stage
from timeline.shortcuts import emit_many
from timeline.testing import only_timelines

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]

ROUNDS = int(os.environ.get("RACE_ROUNDS", "1000"))
AT_ONCE = 25  # Rows that a side takes in one call, where it takes several.
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
LATER = START + 9 * DAY
OPERATOR = Reason.operator("raced")


@pytest.fixture(autouse=True)
def _world():
    wipe()
    clock = Clock()
    with only_timelines(World), clock.told():
        yield
    wipe()


@pytest.fixture
def count(capsys, request):
    """Say how often each outcome was; each that is named must have been, and no other."""

    def counted(outcomes, *wanted):
        times = Counter(outcomes)
        with capsys.disabled():
            print(f"\n{request.node.name}: {dict(times)}")
        assert set(times) == set(wanted), times
        assert times.total() == ROUNDS

    return counted


def placed(count=ROUNDS):
    """Orders with a run each."""
    orders = new_orders(count)
    emit_many("order.placed", orders, key="placed")
    return orders


def due(key):
    """Tasks of a kind, available."""
    while stage(now=LATER, using="default"):
        pass
    return list(ScheduledTask.objects.filter(task_key=f"world.{key}").order_by("pk"))


def cancel_one(task):
    return cancel(task_ids=[task.pk], reason=OPERATOR, now=LATER, using="default")


def event(name, order):
    return emit(name=name, entity=order, key="", payload={}, actor="", occurred_at=None, now=LATER, using="default")


def in_parts(rows):
    return [rows[start : start + AT_ONCE] for start in range(0, len(rows), AT_ONCE)]


class TestCancelAgainstClaim:
    def test_claims_what_is_there_and_cancels_all(self, count):
        """Cancelled before it was claimed, or after: never claimed once it is cancelled."""
        for order in new_orders(ROUNDS // AT_ONCE):
            for number in range(AT_ONCE):
                schedule(
                    task_key="world.extra",
                    entity=order,
                    at=START,
                    payload={},
                    key=str(number),
                    cause=None,
                    now=START,
                    using="default",
                )
        claimed = []

        def take(some):
            for _ in some:
                for batch in claim(limit=2, now=LATER, using="default"):
                    claimed.extend(batch.task_ids)

        results = duel(lambda some: [cancel_one(task) for task in some], take, in_parts(due("extra")), lanes=1)

        assert [error for pair in results for error in pair if isinstance(error, Exception)] == []
        check()
        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"cancelled"}
        ends = LogEntry.objects.filter(to_state="cancelled")
        assert set(ends.filter(from_state="pending").values_list("task_id", flat=True)) == set(claimed)
        assert len(claimed) == len(set(claimed))
        count(ends.values_list("from_state", flat=True), "available", "pending")


class TestCancelAgainstOutcome:
    @pytest.mark.parametrize("key", ["ship", "call"])
    def test_one_of_them_wins_and_the_other_is_told(self, count, key):
        placed()
        attempts = [
            attempt
            for tasks in in_parts(due(key))
            for begun in begin_given(task_ids=[task.pk for task in tasks], clock=lambda: LATER, using="default")
            for attempt in begun
        ]

        results = duel(
            lambda attempt: cancel_one(attempt.task),
            lambda attempt: run_begun([attempt], clock=lambda: LATER, using="default"),
            attempts,
        )

        check()
        outcomes = []
        rows = ScheduledTask.objects.in_bulk([attempt.task.pk for attempt in attempts])
        for attempt, (cancelled, ran) in zip(attempts, results, strict=True):
            state = rows[attempt.task.pk].state
            assert isinstance(cancelled, TransitionNotAllowed if state == State.COMPLETED else list), cancelled
            assert isinstance(ran, list), ran
            assert bool(ran) is (state == State.COMPLETED)
            outcomes.append(state)
        count(outcomes, "completed", "cancelled")


class TestPruneAgainstRedrive:
    def test_of_ad_hoc_tasks_takes_all_of_one_or_nothing(self, count):
        orders = new_orders(ROUNDS)
        for order in orders:
            schedule(
                task_key="world.extra",
                entity=order,
                at=START,
                payload={},
                key="k",
                cause=None,
                now=START,
                using="default",
            )
        tasks = list(ScheduledTask.objects.order_by("pk"))
        self.cancel_all()
        self.again(tasks)
        self.cancel_all()

        self.race(tasks, revisions=3, count=count)

    def test_of_a_run_takes_all_of_it_or_nothing(self, count):
        placed()
        self.cancel_all()

        self.race(list(ScheduledTask.objects.filter(task_key="world.ship").order_by("pk")), revisions=2, count=count)

    def cancel_all(self):
        """Each part a minute later, so that prune keeps step."""
        tasks = ScheduledTask.objects.open()
        entities = list(tasks.order_by("entity_id").values_list("entity_id", flat=True).distinct())
        for minute, some in enumerate(in_parts(sorted(entities, key=int))):
            ids = list(tasks.filter(entity_id__in=some).values_list("pk", flat=True))
            cancel(task_ids=ids, reason=OPERATOR, now=START + minute * MINUTE, using="default")

    def again(self, tasks):
        return redrive(task_ids=[task.pk for task in tasks], reason=OPERATOR, now=LATER, using="default")

    def race(self, tasks, *, revisions, count):
        results = duel(
            lambda part: [self.try_again(task) for task in part[1]],
            lambda part: [
                prune(ended_before=START + part[0] * MINUTE + MINUTE / 2, limit=1, using="default") for _ in part[1]
            ],
            list(enumerate(in_parts(tasks))),
            lanes=1,
        )

        check()
        outcomes = []
        for some, (redriven, pruned) in zip(in_parts(tasks), results, strict=True):
            assert isinstance(pruned, list), pruned
            assert isinstance(redriven, list), redriven
            for task, made in zip(some, redriven, strict=True):
                same = {"task_key": task.task_key, "entity_id": task.entity_id, "occurrence": task.occurrence}
                rows = ScheduledTask.objects.filter(**same)
                assert rows.count() == (revisions if made else 0)
                outcomes.append("redriven" if made else "pruned")
        assert not LogEntry.objects.exclude(task__in=ScheduledTask.objects.all()).exists()
        count(outcomes, "redriven", "pruned")

    def try_again(self, task):
        try:
            return self.again([task])
        except ScheduledTask.DoesNotExist:
            return []


class TestExitAgainstStart:
    def test_of_a_run_ends_it_or_comes_before_it(self, count):
        orders = new_orders(ROUNDS)

        results = duel(lambda order: event("order.closed", order), lambda order: event("order.placed", order), orders)

        check()
        outcomes = []
        runs = {run.entity_id: run for run in TimelineRun.objects.all()}
        for order, (closed, began) in zip(orders, results, strict=True):
            run_now = runs[str(order.pk)]
            assert [run.pk for run in began.started] == [run_now.pk]
            assert [run.pk for run in closed.ended] == ([] if run_now.is_open else [run_now.pk])
            outcomes.append(run_now.end_reason or "open")
        count(outcomes, "open", "closed")

    def test_of_an_attempt_ends_it_or_comes_too_late(self, count):
        orders = placed()
        tasks = {task.entity_id: task for task in due("ship")}

        results = duel(
            lambda order: event("order.closed", order),
            lambda order: run(task_ids=[tasks[str(order.pk)].pk], clock=lambda: LATER, using="default"),
            orders,
        )

        assert [error for pair in results for error in pair if isinstance(error, Exception)] == []
        check()
        states = list(ScheduledTask.objects.filter(task_key="world.ship").values_list("state", flat=True))
        assert Effect.objects.count() == states.count("completed")
        assert not ScheduledTask.objects.open().exists()
        count(states, "completed", "cancelled")


class TestSaveAgainstMove:
    def test_the_last_of_them_says_when(self, count):
        orders = placed()
        tasks = {task.entity_id: task for task in ScheduledTask.objects.filter(task_key="world.ship")}
        saved, moved = START + 3 * DAY, START + 4 * DAY

        def save(order):
            with transaction.atomic():
                Order(pk=order.pk, ships_at=saved).save()

        results = duel(
            save,
            lambda order: move(
                task_ids=[tasks[str(order.pk)].pk], at=moved, reason=OPERATOR, now=START, using="default"
            ),
            orders,
        )

        assert [error for pair in results for error in pair if isinstance(error, Exception)] == []
        check()
        outcomes = []
        for task in ScheduledTask.objects.filter(task_key="world.ship"):
            assert task.anchor_value == saved
            assert task.scheduled_at in (saved, moved)
            outcomes.append("saved last" if task.scheduled_at == saved else "moved last")
        count(outcomes, "saved last", "moved last")


class Stopping(Watch):
    """Tells a worker to give back what it began."""

    def stopping(self):
        """At once."""
        return True


class TestReleaseAgainstExits:
    def test_nobody_waits_for_each_other_in_a_circle(self, count):
        """A worker gives back a group while all these orders are closed, in one order or the other."""
        placed()
        parts = []
        for number, tasks in enumerate(in_parts(due("share"))):
            ids = [task.pk for task in tasks]
            [begun] = begin_given(task_ids=ids, clock=lambda: LATER, using="default")
            parts.append(begun if number % 2 else begun[::-1])

        def close(begun):
            ids = [attempt.task.entity_id for attempt in begun]
            return emit_many("order.closed", Order.objects.filter(pk__in=ids), key="closed")

        results = duel(
            lambda begun: run_begun(begun, clock=lambda: LATER, using="default", watch=Stopping()),
            close,
            parts,
            head_start=0.3,  # Each takes long.
        )

        assert [error for pair in results for error in pair if isinstance(error, Exception)] == []
        check()
        ends = LogEntry.objects.filter(to_state="cancelled", task__task_key="world.share")
        count(ends.values_list("from_state", flat=True), "active", "retryable")
