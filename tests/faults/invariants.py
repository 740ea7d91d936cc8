"""
What must hold of the tables at any moment between two transactions, told by SQL and plain Python: ``timeline`` is not imported.

For one process that looks after each step; ``check/`` judges a whole history of many.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

FINAL = {"completed", "discarded", "cancelled"}
LEASED = {"pending", "active"}
MOVES = {
    ("scheduled", "available"),
    ("retryable", "available"),
    ("available", "pending"),
    ("available", "active"),
    ("pending", "active"),
    ("active", "completed"),
    ("active", "retryable"),
    ("active", "discarded"),
    *((state, "cancelled") for state in ("scheduled", "available", "pending", "active", "retryable")),
}
TASK = "id, run_id, task_key, occurrence, revision, previous_id, entity_label, entity_id, state, seq, attempt, lease_expires_at"
TASK += ", claim_token, finished_at, reason_code"
LOG = "task_id, seq, from_state, to_state, attempt, reason_code"
RUN = "id, timeline, key, entity_label, entity_id, ended_at, end_reason"

Row = dict[str, Any]


def read(cursor: Any, columns: str, table: str) -> list[Row]:
    """Read whole rows of a table by a cursor of any driver."""
    cursor.execute(f"SELECT {columns} FROM {table}")  # noqa: S608 (our own words)
    return [dict(zip(columns.split(", "), row, strict=True)) for row in cursor.fetchall()]


def violations(cursor: Any, *, follow_ups: Mapping[str, set[str]], effects: Mapping[str, str]) -> list[str]:
    """
    Say what is wrong; nothing, if all is well.

    Args:
        cursor: Of the database.
        follow_ups: Task key → keys of the tasks that its completion calls for.
        effects: Key of a kind whose handler writes an effect in its transaction → how the effect's name begins; the id of the
            task follows.
    """
    tasks = read(cursor, TASK, "timeline_scheduledtask")
    log: dict[Any, list[Row]] = defaultdict(list)
    for entry in sorted(read(cursor, LOG, "timeline_logentry"), key=lambda entry: entry["seq"]):
        log[entry["task_id"]].append(entry)
    runs = read(cursor, RUN, "timeline_timelinerun")
    of_run: dict[Any, list[Row]] = defaultdict(list)
    for task in tasks:
        of_run[task["run_id"]].append(task)
    done = Counter(row["name"] for row in read(cursor, "name", "testapp_effect"))
    return [
        *(text for task in tasks for text in _of_log(task, log[task["id"]])),
        *_of_revisions(tasks),
        *(text for run in runs for text in _of_run(run, of_run[run["id"]], follow_ups)),
        *_of_effects(tasks, done, effects),
    ]


def _of_log(task: Row, entries: list[Row]) -> list[str]:
    """Gapless, of legal moves only, each from where the one before led, and in the end what the row says."""
    name = f"{task['task_key']} {task['id']}"
    wrong = _of_row(name, task)
    if [entry["seq"] for entry in entries] != list(range(1, task["seq"] + 1)):
        wrong.append(f"{name}: its log has the numbers {[entry['seq'] for entry in entries]}, its row {task['seq']}")
    for before, entry in zip([None, *entries], entries, strict=False):
        move = entry["from_state"], entry["to_state"]
        if move not in MOVES and move[0] != move[1]:
            wrong.append(f"{name}: moved {' → '.join(move)}")
        if before is not None and before["to_state"] != entry["from_state"]:
            wrong.append(f"{name}: {before['to_state']} before {' → '.join(move)}")
        started = entry["to_state"] == "active" and move[0] != "active"
        if entry["attempt"] != (before["attempt"] if before else 0) + started:
            wrong.append(f"{name}: attempt {entry['attempt']} at {' → '.join(move)}")
    if entries and (entries[-1]["to_state"], entries[-1]["attempt"]) != (task["state"], task["attempt"]):
        wrong.append(f"{name}: its log ends in {entries[-1]}, its row in {task['state']}")
    return wrong


def _of_row(name: str, task: Row) -> list[str]:
    wrong = []
    if (task["state"] in FINAL) != (task["finished_at"] is not None):
        wrong.append(f"{name}: {task['state']}, finished at {task['finished_at']}")
    if (task["state"] in LEASED) != (task["lease_expires_at"] is not None):
        wrong.append(f"{name}: {task['state']}, with a lease until {task['lease_expires_at']}")
    if task["claim_token"] is not None and task["state"] not in LEASED:
        wrong.append(f"{name}: {task['state']}, with the token of a claim")
    if task["state"] in FINAL and not task["reason_code"]:
        wrong.append(f"{name}: {task['state']} for no reason")
    return wrong


def _of_revisions(tasks: list[Row]) -> list[str]:
    """One open at most, it is the latest; numbers without gaps; each names the one before."""
    same: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for task in sorted(tasks, key=lambda task: task["revision"]):
        owner = (task["run_id"],) if task["run_id"] else (task["entity_label"], task["entity_id"])
        same[*owner, task["task_key"], task["occurrence"]].append(task)
    wrong = []
    for rows in same.values():
        name = f"{rows[0]['task_key']} {rows[0]['id']}"
        if [row["revision"] for row in rows] != list(range(1, len(rows) + 1)):
            wrong.append(f"{name}: revisions {[row['revision'] for row in rows]}")
        if any(row["state"] not in FINAL for row in rows[:-1]):
            wrong.append(f"{name}: an earlier revision is open: {[row['state'] for row in rows]}")
        ids = {row["id"] for row in rows}
        wrong += [f"{name}: revision {row['revision']} names none" for row in rows[1:] if row["previous_id"] not in ids]
    return wrong


def _of_run(run: Row, tasks: list[Row], follow_ups: Mapping[str, set[str]]) -> list[str]:
    """It has ended if and only if nothing of it is open or foreseen; what was completed has its follow-ups, once."""
    name = f"run {run['timeline']} {run['id']}"
    latest = {task["task_key"]: task for task in sorted(tasks, key=lambda task: task["revision"])}
    wrong = []
    is_open = any(task["state"] not in FINAL for task in tasks)
    if run["ended_at"] is None and not is_open:
        wrong.append(f"{name}: open, with nothing left of it")
    if run["ended_at"] is not None and any(task["state"] not in FINAL | {"active"} for task in tasks):
        wrong.append(f"{name}: ended ({run['end_reason']}), with {sorted(task['state'] for task in tasks)}")
    if run["ended_at"] is not None and run["end_reason"] == "finished" and is_open:
        wrong.append(f"{name}: finished, with {sorted(task['state'] for task in tasks)}")
    for key, task in latest.items():
        missing = follow_ups.get(key, set()) - set(latest)
        if task["state"] == "completed" and missing and run["end_reason"] in ("", "finished"):
            wrong.append(f"{name}: {key} was completed and is not followed by {sorted(missing)}")
    return wrong


def _of_effects(tasks: list[Row], done: Mapping[str, int], effects: Mapping[str, str]) -> list[str]:
    """What an atomic handler writes is there exactly once if its task was completed, and never else."""
    wrong = []
    for task in tasks:
        if task["task_key"] in effects:
            key = str(task["id"]).replace("-", "")
            times, wanted = done.get(f"{effects[task['task_key']]} {key}", 0), int(task["state"] == "completed")
            if times != wanted:
                wrong.append(f"{task['task_key']} {task['id']}: {task['state']}, with {times} effects")
    return wrong
