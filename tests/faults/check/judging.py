"""Judge a history by all rules, and count what there was to judge."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import median

from tests.faults.check import of_effects, of_ends, of_logs, of_machines, of_places, of_starts
from tests.faults.check.history import History, Violation
from tests.faults.check.journals import read_journals
from tests.faults.check.reading import read_tables

GRACE = 5.0


def read_history(url: str, folder: Path) -> History:
    """Read the database and the journals."""
    journals = read_journals(folder)
    return History(**read_tables(url)._asdict(), **journals._asdict())


def judge(history: History, *, slack: float = 0.0, grace: float = GRACE) -> list[Violation]:
    """
    Give what should not be, in the order of the rules.

    Args:
        history: To judge, when everything has come to rest.
        slack: Seconds that a busy machine may keep a process waiting between its last look and a handler.
        grace: Seconds after the end of a trouble within which it may still cost an attempt.
    """
    return [
        *of_ends.none_lost(history),
        *of_ends.started_runs_are_there(history),
        *of_starts.started_before(history),
        *of_starts.not_two_at_once(history),
        *of_places.not_more_at_once(history),
        *of_effects.atomic_once(history),
        *of_effects.plain_repeats(history),
        *of_effects.losses_have_a_cause(history, grace),
        *of_logs.legal_moves(history),
        *of_logs.replay(history),
        *of_machines.moves_lead_there(history),
        *of_machines.by_the_table(history),
        *of_machines.nothing_rests_for_ever(history),
        *of_machines.said_once(history),
        *of_starts.not_early(history),
        *of_starts.not_after_cancel(history, slack),
        *of_ends.follow_ups_once(history),
        *of_ends.runs_end(history),
        *of_effects.one_key(history),
        *of_effects.one_token(history),
    ]


def counted(history: History) -> dict[str, object]:
    """What there was to judge."""
    return {
        "tasks": len(history.tasks),
        "ended as": dict(Counter(task.state for task in history.tasks.values())),
        "runs": len(history.runs),
        "moves": len(history.moves),
        "log entries": len(history.entries),
        "handlers entered": len(history.entered),
        "seen from outside at entry": sum(one.seen is not None for one in history.entered),
        "atomic effects": len(history.effects),
        "attempts lost": sum(entry.reason_code == "worker_lost" for entry in history.entries),
        "troubles": dict(Counter(trouble.kind for trouble in history.troubles)),
        "asked": dict(Counter(asked.verb for asked in history.asked)),
        "asked without an answer": sum(asked.done_at is None for asked in history.asked),
        "messages": len(history.messages),
    }


def recoveries(history: History) -> list[float]:
    """Seconds from each kill to the next start of a task whose handler it ended, sorted."""
    found = []
    for trouble in history.troubles:
        if trouble.kind != "killed":
            continue
        for one in history.entered:
            if one.group == trouble.group and one.at <= trouble.since and one.left_at is None:
                later = [other.at for other in history.entered_of[one.task_id] if other.at > trouble.since]
                found += [min(later) - trouble.since] if later else []
    return sorted(found)


def shown(seconds: list[float]) -> str:
    """Median and maximum of some times."""
    return f"p50 {median(seconds):.1f} s, max {max(seconds):.1f} s, of {len(seconds)}" if seconds else "none"
