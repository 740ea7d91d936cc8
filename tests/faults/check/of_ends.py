"""Rules of ends: nothing is lost, follow-ups come once, runs end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.faults.check.history import History, Run, Task, Violation

WAITING = frozenset({"scheduled", "retryable"})
FINISHED = "finished"


def none_lost(history: History) -> Iterator[Violation]:
    """What was confirmed to somebody is there; and each task has ended, or rests until a time that is ahead."""
    for asked in history.asked:
        if asked.verb == "schedule" and asked.done_at is not None:
            for task_id in asked.task_ids:
                if task_id not in history.tasks:
                    yield Violation("lost", task_id, "it was scheduled and confirmed, and there is no such row")
    for task in history.tasks.values():
        if task.is_open and not (task.state in WAITING and task.scheduled_at > history.read_at):
            late = history.read_at - task.scheduled_at
            yield Violation("lost", task.id, f"{task.task_key} is {task.state} still, {late:.1f} s after it was due")


def started_runs_are_there(history: History) -> Iterator[Violation]:
    """Each entity whose start was confirmed, however often, has one run, with one row of each task it begins with."""
    runs = Counter(run.entity_id for run in history.runs.values())
    for asked in history.asked:
        if asked.verb == "start" and asked.done_at is not None and runs[asked.entity_id] != 1:
            yield Violation("lost", asked.entity_id, f"a run was started for it, and it has {runs[asked.entity_id]}")
    tasks = _by_run(history)
    for run in history.runs.values():
        for key in history.roots.get(run.timeline, []):
            rows = sum(task.task_key == key and task.previous_id is None for task in tasks[run.id])
            if rows != 1:
                yield Violation("lost", run.id, f"it has {rows} rows of {key}, with which it begins")


def runs_end(history: History) -> Iterator[Violation]:
    """A run is open as long as one of its tasks is, and no longer."""
    tasks = _by_run(history)
    for run in history.runs.values():
        is_open = any(task.is_open for task in tasks[run.id])
        if run.ended_at is None and not is_open:
            yield Violation("runs-end", run.id, f"all of its {len(tasks[run.id])} tasks have ended, and it has not")
        if run.ended_at is not None and is_open:
            yield Violation("runs-end", run.id, f"it has ended ({run.end_reason}), and a task of it has not")


def follow_ups_once(history: History) -> Iterator[Violation]:
    """
    What follows a task has one row once that has completed, and none before.

    In a run that an exit ended it may have none.
    """
    tasks = _by_run(history)
    for run in history.runs.values():
        for key, followers in history.follow_ups.items():
            if key.partition(".")[0] == run.timeline:
                for follower in followers:
                    if problem := _follower_of(key, follower, run, tasks[run.id]):
                        yield Violation("follow-ups", run.id, problem)


def _follower_of(key: str, follower: str, run: Run, tasks: list[Task]) -> str:
    completed = any(task.task_key == key and task.state == "completed" for task in tasks)
    rows = sum(task.task_key == follower and task.previous_id is None for task in tasks)
    if rows > completed:
        return f"{follower} has {rows} rows, and {key} has {'' if completed else 'not '}completed"
    cut_short = run.ended_at is not None and run.end_reason != FINISHED
    if rows < completed and not cut_short:
        return f"{key} has completed, and {follower} has no row"
    return ""


def _by_run(history: History) -> dict[str, list[Task]]:
    tasks: dict[str, list[Task]] = defaultdict(list)
    for task in history.tasks.values():
        if task.run_id is not None:
            tasks[task.run_id].append(task)
    return tasks
