"""An exit against a start, of a run or of an attempt at a task of it, and against the outcome of such an attempt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tests.faults.races.duels import duel
from tests.faults.races.race import LATER, Race, begun, due, event, nobody_failed, placed
from tests.faults.world import check, new_orders
from timeline.engine.groups import run_begun
from timeline.models import LogEntry, ScheduledTask, TimelineRun


def exit_against_start(rounds: int) -> Iterable[str]:
    """The exit ends the run, or it was recorded before it began."""
    orders = new_orders(rounds)

    results = duel(
        lambda order: event("order.closed", order),
        lambda order: event("order.placed", order),
        orders,
        left_first=lambda closed, _began: not getattr(closed.did, "ended", ()),
    )

    nobody_failed(results)
    check()
    outcomes = []
    runs = {run.entity_id: run for run in TimelineRun.objects.all()}
    for order, (closed, began) in zip(orders, results, strict=True):
        run_now = runs[str(order.pk)]
        assert [run.pk for run in began.started] == [run_now.pk]
        assert [run.pk for run in closed.ended] == ([] if run_now.is_open else [run_now.pk])
        # At the same time, ids tell the order: what the last look goes by.
        assert (closed.event.pk < run_now.pk) is run_now.is_open
        outcomes.append(run_now.end_reason or "open")
    return outcomes


def exit_against_attempt(rounds: int) -> Iterable[str]:
    """The exit ends a task before it is started, or as one that is."""
    orders = placed(rounds)
    tasks = {task.entity_id: task for task in due("ship")}

    results = duel(
        lambda order: event("order.closed", order),
        lambda order: begun([tasks[str(order.pk)]]),
        orders,
        left_first=lambda _closed, attempts: not attempts.did,
    )

    nobody_failed(results)
    check()
    ends = LogEntry.objects.filter(task__task_key="world.ship", to_state="cancelled")
    started = sorted(attempt.task.pk for _closed, attempts in results for attempt in attempts)
    assert sorted(ends.filter(from_state="active").values_list("task_id", flat=True)) == started
    return ends.values_list("from_state", flat=True)


def exit_against_outcome(rounds: int) -> Iterable[str]:
    """The exit ends a task that runs, or what follows from it once it is completed."""
    placed(rounds)

    results = duel(
        lambda attempt: event("order.closed", attempt.task.entity_ref),
        lambda attempt: run_begun([attempt], clock=lambda: LATER, using="default"),
        begun(due("ship")),
        left_first=lambda _closed, ran: not ran.did,
    )

    nobody_failed(results)
    check()
    assert not ScheduledTask.objects.open().exists()
    tasks = ScheduledTask.objects.filter(task_key="world.ship")
    completed = tasks.filter(state="completed")
    followed = ScheduledTask.objects.filter(task_key="world.mail")
    assert set(followed.values_list("run", flat=True)) == set(completed.values_list("run", flat=True))
    assert completed.count() == sum(bool(ran) for _closed, ran in results)
    return tasks.values_list("state", flat=True)


EXIT_AGAINST_START: Final = Race("an exit against a start of a run", exit_against_start, ("open", "closed"))
EXIT_AGAINST_ATTEMPT: Final = Race(
    "an exit against a start of an attempt", exit_against_attempt, ("available", "active")
)
EXIT_AGAINST_OUTCOME: Final = Race("an exit against an outcome", exit_against_outcome, ("completed", "cancelled"))
