"""The faults that the rule machine must notice, each planted by itself."""

from __future__ import annotations

from typing import Final

from tests.faults.planted.surgery import Change, Fault


def _fault(name: str, *changes: tuple[str, ...]) -> Fault:
    return Fault(name, tuple(Change(*change) for change in changes))


FAULTS: Final = [
    _fault(
        "a run does not end with its last task",
        (
            "operations.reconcile:reconcile_locked",
            "        end(nothing_left, RunEnd.FINISHED, now=now, using=using)\n",
            "",
        ),
    ),
    _fault(
        "a follow-up is not made",
        (
            "operations.reconcile:changes_of",
            "tasks.append(new_task(run, definition, change, key=next(ids), now=now))",
            "continue",
        ),
    ),
    _fault(
        "a date that is saved moves nothing",
        (
            "operations.reconcile:changes_of",
            "writes.append(Write(task=row, times=times, definition_hash=fingerprint, reason=reason))",
            "continue",
        ),
    ),
    _fault(
        "a cancel leaves the token",
        ("columns", "    claim_token = NULL,  -- if not lease\n", ""),
    ),
    _fault("a rescue does not count the attempt", ("dispatch.rescue:_lost", "lost=lost - task.lost,", "lost=0,")),
    _fault(
        "a lost message is not sent again",
        ("dispatch.rescue:rescue", "if task.state == State.PENDING]", "if False]"),
    ),
    _fault(
        "a move keeps the old time",
        ("operations.move:_in_place", "scheduled_at=at,", "scheduled_at=task.scheduled_at,"),
    ),
    _fault(
        "what is open can be redriven",
        ("operations.redrive:_check", "if task.state in OPEN:", "if False:"),
    ),
    _fault(
        "prune takes what is open",
        ("ended_ad_hoc", "(finished_at IS NULL OR finished_at >= %(before)s", "(finished_at >= %(before)s"),
    ),
    _fault(
        "an exit leaves what is available",
        ("held_runs", "({final})", "({final}, 'available')", "postgresql"),
        ("open_of_runs", "({final})", "({final}, 'available')", "sqlite"),
    ),
    _fault(
        "a poll takes what is due tomorrow",
        (
            "dispatch.poll:stage_and_tell",
            "    if dialect_of(using).has_set_statements:\n",
            "    now += __import__('datetime').timedelta(days=1)\n    if dialect_of(using).has_set_statements:\n",
        ),
    ),
    _fault(
        "an outcome that comes too late is accepted",
        ("transition", "AND task.attempt = change.from_attempt", ""),
    ),
    _fault(
        "a cancel is ignored at the fence",
        ("engine.finalize:record_together", "    if len(done) < len(writes):\n", "    if False:\n"),
        ("engine.execute:_execute", "using=runtime.using)[0]", "using=runtime.using) and write.task or write.task"),
    ),
    _fault(
        "a message that comes twice starts its task twice",
        ("held_given", "(state = 'pending' AND", "(state IN ('pending', 'active') AND", "postgresql"),
        ("transition", "({sources})", "({sources}, 'active')", "postgresql"),
        ("engine.attempts:_triggers", "state == State.PENDING and", "state in LEASED and", "sqlite"),
        (
            "engine.attempts:_triggers",
            "    state = State(task.state)\n",
            "    from timeline.lifecycle import LEASED\n\n    state = State(task.state)\n",
            "sqlite",
        ),
    ),
    _fault("a failure does not count", ("engine.failures:discarding", "failures=failures,", "failures=0,")),
    _fault(
        "a retry is due at once",
        ("engine.failures:_outcome", "scheduled_at=next_opening(attempt, now + delay)", "scheduled_at=now"),
    ),
    _fault(
        "the last look does not compare the date",
        ("engine.precheck:superseded", "if value is None or value != task.anchor_value:", "if value is None:"),
    ),
]
