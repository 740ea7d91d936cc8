"""Rules of effects: atomic ones once, plain ones again only after a lost attempt; one key for each; losses have a cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.faults.check.history import Entered, History, Violation

PLAIN = "plain"
ATOMIC = "atomic"


def atomic_once(history: History) -> Iterator[Violation]:
    """A completed task has written once, in the attempt that completed; one that ended otherwise, not at all."""
    effects = defaultdict(list)
    for effect in history.effects:
        effects[effect.task_id].append(effect.attempt)
    for task_id in {one.task_id for one in history.entered if one.kind == ATOMIC} | effects.keys():
        task = history.tasks.get(task_id)
        wrote = effects.get(task_id, [])
        completed = task is not None and task.state == "completed"
        if len(wrote) != completed:
            state = task.state if task else "gone"
            yield Violation("atomic-once", task_id, f"it is {state}, and its effect is there {len(wrote)} times")
        elif task is not None and completed and wrote != [task.attempt]:
            yield Violation(
                "atomic-once", task_id, f"attempt {wrote[0]} wrote its effect, attempt {task.attempt} completed it"
            )


def plain_repeats(history: History) -> Iterator[Violation]:
    """A plain handler is entered once an attempt, and again only after an attempt that was lost, or that raised."""
    for task_id, entered in history.entered_of.items():
        if entered[0].kind != PLAIN:
            continue
        for attempt, times in Counter(one.attempt for one in entered).items():
            if times > 1:
                yield Violation("plain-repeat", task_id, f"attempt {attempt} was entered {times} times")
        by_attempt = {one.attempt: one for one in entered}
        for attempt in sorted(by_attempt)[:-1]:
            if problem := _unexplained(by_attempt[attempt], history):
                yield Violation("plain-repeat", task_id, f"attempt {attempt} {problem}, and it was entered again")


def _unexplained(one: Entered, history: History) -> str:
    end = history.end_of(one.task_id, one.attempt)
    if end is None:
        return "has no end in the log"
    if end.reason_code == "worker_lost" or one.how == "raised":
        return ""
    return f"ended as {end.reason_code or end.to_state}, though its handler was {one.how or 'not left'}"


def losses_have_a_cause(history: History, grace: float) -> Iterator[Violation]:
    """
    An attempt that was entered and is logged as lost had something done to its process, or to the database.

    Args:
        history: To judge.
        grace: Seconds that an effect of it may last: what was undone, a connection made anew.
    """
    for one in history.entered:
        end = history.end_of(one.task_id, one.attempt)
        if end is None or end.reason_code != "worker_lost":
            continue
        if not any(trouble.touches(one.group, one.at - grace, end.at) for trouble in history.troubles):
            yield Violation(
                "lost-without-cause", one.task_id, f"attempt {one.attempt} was given up, and nothing had happened to it"
            )


def one_key(history: History) -> Iterator[Violation]:
    """All attempts of a task have one idempotency key; so has the next revision of one that did not complete."""
    keys: dict[str, set[str]] = defaultdict(set)
    for one in history.entered:
        keys[one.task_id].add(one.key)
    for task_id, its_own in keys.items():
        if len(its_own) > 1:
            yield Violation("idempotency-key", task_id, f"its attempts were told {sorted(its_own)}")
        if its_own != {_first(task_id, history)}:
            yield Violation("idempotency-key", task_id, "its key is not the id of its first row that did not complete")


def _first(task_id: str, history: History) -> str:
    task = history.tasks.get(task_id)
    while task is not None and task.previous_id is not None:
        previous = history.tasks.get(task.previous_id)
        if previous is None or previous.state == "completed":
            break
        task = previous
    return task.id if task is not None else task_id


def one_token(history: History) -> Iterator[Violation]:
    """All messages of one claim carry one token: a task has no more tokens than claims."""
    tokens: dict[str, set[str]] = defaultdict(set)
    for message in history.messages:
        for task_id in message.task_ids:
            tokens[task_id].add(message.token)
    for task_id, its_own in tokens.items():
        claims = sum(entry.to_state == "pending" != entry.from_state for entry in history.logs.get(task_id, []))
        if len(its_own) > max(claims, 1):
            yield Violation("tokens", task_id, f"messages with {len(its_own)} tokens were sent for {claims} claims")
