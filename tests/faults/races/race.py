"""What a race is, and what all of them start from."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, NamedTuple

from django.db import connection

from tests.faults.races.duels import Results
from tests.faults.world import START, new_orders
from tests.testapp.models import Order
from timeline.dispatch.poll import stage
from timeline.engine.groups import Attempt, begin_given
from timeline.lifecycle import Reason
from timeline.models import EntityRef, ScheduledTask
from timeline.operations.cancel import cancel
from timeline.operations.emit import Emission, emit
from timeline.shortcuts import emit_many

DAY: Final = timedelta(days=1)
MINUTE: Final = timedelta(minutes=1)
LATER: Final = START + 9 * DAY
OPERATOR: Final = Reason.operator("raced")


class Race(NamedTuple):
    """
    One race.

    Args:
        name: In words.
        run: Told how many rounds; says how each ended.
        outcomes: How a round may end: which side came first, and where it then met the other.
    """

    name: str
    run: Callable[[int], Iterable[str]]
    outcomes: tuple[str, ...]

    def go(self, rounds: int) -> Counter[str]:
        """
        Let it go; tell how often each outcome was.

        Raises:
            AssertionError: if something is not as it must be. To lose a race is nobody's fault: the log has no error of it.
        """
        with errors_in_log() as errors:
            times = Counter(self.run(rounds))
        assert errors == []
        assert set(times) <= set(self.outcomes), times
        assert times.total() == rounds
        return times


@contextmanager
def errors_in_log() -> Iterator[list[str]]:
    """Collect what the log of the process has of errors within the block."""
    errors: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: errors.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("timeline")
    logger.addHandler(handler)
    try:
        yield errors
    finally:
        logger.removeHandler(handler)


def placed(count: int) -> list[Order]:
    """Orders with a run each."""
    orders = new_orders(count)
    emit_many("order.placed", orders, key="placed")
    return orders


def due(key: str) -> list[ScheduledTask]:
    """Tasks of a kind, available."""
    while stage(now=LATER, using="default"):
        pass
    return list(ScheduledTask.objects.filter(task_key=f"world.{key}").order_by("pk"))


def begun(tasks: list[ScheduledTask]) -> list[Attempt]:
    """Begin attempts, several at a time."""
    groups = [
        begin_given(task_ids=[task.pk for task in some], clock=lambda: LATER, using="default")
        for some in in_parts(tasks, 25)
    ]
    return [attempt for group in groups for attempts in group for attempt in attempts]


def cancel_one(task: ScheduledTask) -> list[ScheduledTask]:
    """Act: cancel a task."""
    return cancel(task_ids=[task.pk], reason=OPERATOR, now=LATER, using="default")


def event(name: str, order: Order | EntityRef) -> Emission:
    """Act: something happens to an order."""
    return emit(name=name, entity=order, key="", payload={}, actor="", occurred_at=None, now=LATER, using="default")


def in_parts(rows: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Several at a time."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def nobody_failed(results: Results) -> None:
    """No act raised anything."""
    assert [error for pair in results for error in pair if isinstance(error, Exception)] == []


def tell_planner() -> None:
    """Let the database count its rows: without statistics, to look for a few would be to read all there is."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
