"""Rules of limits: no more at once than may be, and nothing else while one is half done that is to come to its end."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.check.history import Entered, History, Violation
from tests.faults.check.of_starts import end_of

Span = tuple[float, float, str]  # From when until when something is under way, and which task.


def not_more_at_once(history: History) -> Iterator[Violation]:
    """
    No handler is entered while as many of its kind are under way as may be.

    One is under way until it is left; or, where its limit says so, from its first attempt until its task has completed.
    """
    for task_key, (most, until) in history.limits.items():
        spans = sorted(_to_the_end(history, task_key) if until == "end" else _attempts(history, task_key))
        for number, (start, _end, task_id) in enumerate(spans):
            before = [other for other in spans[:number] if other[1] > start and other[2] != task_id]
            if len(before) >= most:
                said = f"it was entered while {len(before)} of {task_key} were under way, of which {most} may be"
                yield Violation("places", task_id, said)


def _attempts(history: History, task_key: str) -> Iterator[Span]:
    for one in _entered(history, task_key):
        yield one.at, end_of(one, history), one.task_id


def _to_the_end(history: History, task_key: str) -> Iterator[Span]:
    first: dict[str, float] = {}
    for one in _entered(history, task_key):
        first[one.task_id] = min(one.at, first.get(one.task_id, one.at))
    for task_id, at in first.items():
        task = history.tasks[task_id]
        done = task.finished_at is not None and task.state == "completed"
        yield at, task.finished_at if done and task.finished_at else float("inf"), task_id


def _entered(history: History, task_key: str) -> Iterator[Entered]:
    for one in history.entered:
        task = history.tasks.get(one.task_id)
        if task is not None and task.task_key == task_key:
            yield one
