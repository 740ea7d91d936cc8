"""Rules of the log: only legal moves, and replaying it gives the row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tests.faults.check.history import FINAL, Entry, History, Task, Violation

# The checker's own table, written down from the documentation and not from the code.
LEGAL = frozenset(
    {
        ("scheduled", "available"),
        ("scheduled", "cancelled"),
        ("available", "pending"),
        ("available", "active"),
        ("available", "cancelled"),
        ("pending", "active"),
        ("pending", "cancelled"),
        ("active", "completed"),
        ("active", "retryable"),
        ("active", "discarded"),
        ("active", "cancelled"),
        ("retryable", "available"),
        ("retryable", "cancelled"),
    }
)
# What is logged of a task that stays where it is, and what its entry must tell then: another time, which not every change
# of other columns has; that somebody has it run again; that its message was sent again; that its worker was given longer.
IN_PLACE = {"scheduled": "", "retryable": "", "available": "redriven", "pending": "resend", "active": "grace"}
CREATED_AS = frozenset({"scheduled", "available"})


def legal_moves(history: History) -> Iterator[Violation]:
    """Each entry is a move that there is, from where the entry before it came to."""
    for task_id, log in history.logs.items():
        before = None
        for entry in log:
            if problem := _illegal(entry, before):
                yield Violation("legal-moves", task_id, f"entry {entry.seq} {problem}")
            before = entry.to_state


def _illegal(entry: Entry, before: str | None) -> str:
    move = (entry.from_state, entry.to_state)
    if before is None and entry.from_state not in CREATED_AS:
        return f"begins at {entry.from_state}, where no task is created"
    if before is not None and entry.from_state != before:
        return f"goes from {entry.from_state}, though the entry before it came to {before}"
    if move in LEGAL:
        return ""
    if entry.from_state == entry.to_state and (told := IN_PLACE.get(entry.from_state)) is not None:
        return "" if not told or told in entry.detail else f"stays {entry.from_state} and does not tell why"
    return f"goes from {move[0]} to {move[1]}: there is no such move"


def replay(history: History) -> Iterator[Violation]:
    """State, seq, attempt, due time, end and reason of each row are those that its log comes to."""
    for task in history.tasks.values():
        for problem in _differences(task, history.logs.get(task.id, [])):
            yield Violation("replay", task.id, problem)
    for task_id in history.logs.keys() - history.tasks.keys():
        yield Violation("replay", task_id, "has a log and no row")


def _differences(task: Task, log: list[Entry]) -> Iterator[str]:
    if [entry.seq for entry in log] != list(range(1, len(log) + 1)):
        yield f"the numbers of its entries have gaps: {[entry.seq for entry in log]}"
    if task.seq != len(log):
        yield f"its row says {task.seq} entries, its log has {len(log)}"
    if not log:
        if task.state not in CREATED_AS or task.attempt:
            yield f"its row is {task.state} at attempt {task.attempt}, and nothing is logged"
        return
    if task.state != log[-1].to_state:
        yield f"its row is {task.state}, its log comes to {log[-1].to_state}"
    yield from _attempts(task, log)
    yield from _times(task, log)
    codes = [entry.reason_code for entry in log if entry.reason_code]
    if codes and task.reason_code != codes[-1]:
        yield f"its row says {task.reason_code}, its log {codes[-1]}"


def _attempts(task: Task, log: list[Entry]) -> Iterator[str]:
    started = 0
    for entry in log:
        started += (entry.from_state, entry.to_state) != ("active", "active") and entry.to_state == "active"
        if entry.attempt != started:
            yield f"entry {entry.seq} is of attempt {entry.attempt}, of {started} that were started"
    if task.attempt != started:
        yield f"its row is at attempt {task.attempt}, its log has {started} starts"


def _times(task: Task, log: list[Entry]) -> Iterator[str]:
    told = [entry.detail["scheduled_at"] for entry in log if "scheduled_at" in entry.detail]
    if told and seconds(told[-1]) != task.scheduled_at:
        yield f"its row is due at {task.scheduled_at}, its log says {seconds(told[-1])}"
    ended = log[-1].at if log[-1].to_state in FINAL else None
    if ended != task.finished_at:
        yield f"its row ended at {task.finished_at}, its log says {ended}"


def seconds(text: str) -> float:
    """A time in the log's details, in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()
