"""Rules of starts: committed before, not early, not after a cancel, and never two that live at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.faults.check.history import Entered, Entry, History, Violation
from tests.faults.check.of_logs import seconds

CLOCK = 0.005  # Seconds by which the clock that a handler reads may lag behind the database's: both are this machine's.
LATE = 0.05  # Seconds after a committed cancel within which a handler may still be entered, as documented.


def started_before(history: History) -> Iterator[Violation]:
    """Each handler was entered after its attempt's start was committed: somebody else saw it, and the log has it."""
    for one in history.entered:
        log = history.logs.get(one.task_id, [])
        starts = {entry.attempt for entry in log if entry.to_state == "active"}
        if one.attempt not in starts:
            yield Violation("start-not-committed", one.task_id, f"attempt {one.attempt} was entered and is in no log")
        elif one.seen and one.seen[1] < one.attempt:
            yield Violation(
                "start-not-committed", one.task_id, f"attempt {one.attempt} was entered while its row was {one.seen}"
            )


def not_two_at_once(history: History) -> Iterator[Violation]:
    """
    No attempt is in its handler while another one of the task is in it.

    An attempt whose process was killed, frozen or cut off from the database ends with that.
    """
    for task_id, entered in history.entered_of.items():
        lives = [(one, end_of(one, history)) for one in entered]
        for (earlier, end), (later, _end) in pairwise(lives):
            if later.at < end:
                yield Violation(
                    "two-live-attempts",
                    task_id,
                    f"attempt {later.attempt} was entered while attempt {earlier.attempt} was in its handler",
                )


def end_of(one: Entered, history: History) -> float:
    """When it was left, or its process came to its end."""
    left = float("inf") if one.left_at is None else one.left_at
    ends = (
        max(trouble.since, one.at)
        for trouble in history.troubles
        if trouble.kind in ("killed", "frozen", "cut off") and trouble.touches(one.group, one.at, left)
    )
    return min([left, *ends])


def not_early(history: History) -> Iterator[Violation]:
    """No handler was entered before the time its task was due at, as the row said then."""
    first = {task_id: asked.due_at for asked in history.asked for task_id in asked.task_ids if asked.due_at is not None}
    for one in history.entered:
        due = _due_at(one, history, first.get(one.task_id))
        if due is not None and one.at < due - CLOCK:
            yield Violation(
                "early", one.task_id, f"attempt {one.attempt} was entered {due - one.at:.3f} s before it was due"
            )


def _due_at(one: Entered, history: History, asked_for: float | None) -> float | None:
    """When it was due, as of that attempt's start; None if nobody can tell."""
    task = history.tasks.get(one.task_id)
    if task is None:
        return None
    log = history.logs[one.task_id]
    changes = [entry for entry in log if "scheduled_at" in entry.detail]
    started = next((entry.seq for entry in log if entry.to_state == "active" and entry.attempt == one.attempt), 0)
    before = [entry for entry in changes if entry.seq < started]
    if before:
        return seconds(before[-1].detail["scheduled_at"])
    if changes and "scheduled_at_before" in changes[0].detail:
        return seconds(changes[0].detail["scheduled_at_before"])
    return asked_for if changes else task.scheduled_at


def not_after_cancel(history: History, slack: float) -> Iterator[Violation]:
    """
    No handler was entered later than 50 ms after a cancel that was confirmed to somebody.

    A process that was frozen or hindered between its last look and the handler could not know.

    Args:
        history: To judge.
        slack: Seconds that a busy machine may keep a process waiting on top of that.
    """
    for asked in history.asked:
        if asked.verb not in ("cancel", "exit") or asked.done_at is None:
            continue
        for task_id in asked.task_ids or _of_entity(asked.entity_id, history):
            ended = _cancelled(history.logs.get(task_id, []))
            if ended is None or not asked.asked_at - CLOCK <= ended.at <= asked.done_at + CLOCK:
                continue
            for one in history.entered_of.get(task_id, []):
                late = one.at - asked.done_at
                if late > LATE + slack and not history.is_troubled(one.group, asked.asked_at - 1, one.at):
                    yield Violation(
                        "after-cancel", task_id, f"attempt {one.attempt} was entered {late:.3f} s after its cancel"
                    )


def _of_entity(entity_id: str, history: History) -> list[str]:
    return [task.id for task in history.tasks.values() if entity_id and task.entity_id == entity_id]


def _cancelled(log: list[Entry]) -> Entry | None:
    return log[-1] if log and log[-1].to_state == "cancelled" else None
