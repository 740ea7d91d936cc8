"""Rules of machines: no move that the table does not have, none lost, none twice, and nothing that rests for ever."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.faults.check.history import History, Move, Violation


def moves_lead_there(history: History) -> Iterator[Violation]:
    """The entries of a run, one after the other and without a gap, lead to the state that it is in."""
    for run_id, moves in _by_run(history).items():
        run = history.runs[run_id]
        if [move.seq for move in moves] != list(range(run.moves + 1)):
            yield Violation(
                "moves", run_id, f"it has moved {run.moves} times, and has entries {[m.seq for m in moves]}"
            )
        for before, move in pairwise(moves):
            if move.from_state != before.to_state:
                yield Violation("moves", run_id, f"it came to {before.to_state}, and went on from {move.from_state}")
        if (moves[-1].to_state, moves[-1].back) != (run.state, run.back):
            yield Violation("moves", run_id, f"its entries lead to {moves[-1].to_state}, and it is in {run.state}")
    for run in history.runs.values():
        if run.timeline in history.machines and run.id not in _by_run(history):
            yield Violation("moves", run.id, "it is a machine's, and has no entry")


def by_the_table(history: History) -> Iterator[Violation]:
    """Each move is one that the table has; ``BACK`` leads to where the entry before says."""
    for run_id, moves in _by_run(history).items():
        table = history.machines.get(history.runs[run_id].timeline)
        for before, move in pairwise(moves) if table else ():
            target = table[move.from_state].get(move.event)
            wanted = {"BACK": before.back, "STAY": move.from_state}.get(target or "", target)
            if wanted is None or move.to_state != wanted:
                yield Violation("table", run_id, f"{move.event} moved it from {move.from_state} to {move.to_state}")


def nothing_rests_for_ever(history: History) -> Iterator[Violation]:
    """A run has ended where its table ends, and nowhere else; until then it has a task that is ahead."""
    ahead = {task.run_id for task in history.tasks.values() if task.is_open}
    for run in history.runs.values():
        if table := history.machines.get(run.timeline):
            if (run.ended_at is not None) != (not table[run.state]):
                yield Violation("rests", run.id, f"it is in {run.state}, and ended at {run.ended_at}")
            if run.ended_at is None and run.id not in ahead:
                yield Violation("rests", run.id, f"it is in {run.state}, and nothing is ahead")


def said_once(history: History) -> Iterator[Violation]:
    """What was said and confirmed is recorded once and has moved its run once; so has each event that moved one."""
    moved = Counter(move.cause_id for move in history.moves if move.cause_id is not None)
    for event_id, count in moved.items():
        if count > 1:
            yield Violation("said", event_id, f"one event moved {count} times")
        if event_id not in history.events:
            yield Violation("said", event_id, "a move names it, and it is not there")
    by_key = {(event.entity_id, event.key): event for event in history.events.values() if event.key}
    for asked in history.asked:
        if asked.verb == "say" and asked.done_at is not None:
            for key in asked.task_ids:
                event = by_key.get((asked.entity_id, key))
                if event is None or not moved[event.id]:
                    yield Violation("said", asked.entity_id, f"{key} was said and confirmed, and moved nothing")


def _by_run(history: History) -> dict[str, list[Move]]:
    moves: dict[str, list[Move]] = defaultdict(list)
    for move in sorted(history.moves, key=lambda move: move.seq):
        moves[move.run_id].append(move)
    return moves
