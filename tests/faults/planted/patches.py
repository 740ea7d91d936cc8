"""The faults: what text of the package each one replaces, and what rules of the checker are to say so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[3]


class Change(NamedTuple):
    """In this file of the package, this text, which is there once, becomes that one."""

    file: str
    old: str
    new: str


class Fault(NamedTuple):
    """
    One planted fault.

    Args:
        name: In words.
        steps: Of the course, that show it.
        rules: Of the checker; one of them at least must say so.
        changes: Of the package.
    """

    name: str
    steps: str
    rules: frozenset[str]
    changes: tuple[Change, ...]

    def plant(self, folder: Path) -> None:
        """
        Copy the package into a folder, and change it there.

        Raises:
            LookupError: if a text is not there (any more): the fault has to be written anew.
        """
        # With what was compiled: only what is changed is compiled again.
        shutil.copytree(ROOT / "timeline", folder / "timeline")
        for change in self.changes:
            path = folder / "timeline" / change.file
            text = path.read_text(encoding="utf-8")
            if text.count(change.old) != 1:
                raise LookupError(f"{self.name}: {change.file} has this {text.count(change.old)} times: {change.old!r}")
            path.write_text(text.replace(change.old, change.new), encoding="utf-8")


def _fault(name: str, steps: str, rules: str, *changes: tuple[str, str, str]) -> Fault:
    return Fault(name, steps, frozenset(rules.split()), tuple(Change(*change) for change in changes))


FAULTS: Final = [
    _fault(
        "the fence does not compare the attempt",
        "frozen",
        "atomic-once",
        ("sql/transition.postgresql.sql", "        AND task.attempt = change.from_attempt  -- if not found\n", ""),
    ),
    _fault(
        "a start is not committed before its handler is entered",
        "simple",
        "start-not-committed",
        (
            "store/transactions.py",
            "    if dialect_of(using).has_set_statements and not connections[using].in_atomic_block:\n        yield\n",
            "    if dialect_of(using).has_set_statements and not connections[using].in_atomic_block:\n"
            "        with atomic(using=using):\n"
            "            yield\n"
            "            connections[using].set_rollback(True)\n",
        ),
    ),
    _fault(
        "a task completes without an entry in the log",
        "simple",
        "replay",
        (
            "sql/entries.sql",
            "        '{}'{json}  -- if not detail\n    FROM changed\n",
            "        '{}'{json}  -- if not detail\n    FROM changed\n    WHERE state <> 'completed'\n",
        ),
    ),
    _fault(
        "the log's numbers skip one",
        "simple",
        "replay",
        (
            "sql/columns.sql",
            "    seq = task.seq + 1,",
            "    seq = task.seq + 1 + CASE change.to_state WHEN 'completed' THEN 1 ELSE 0 END,",
        ),
    ),
    _fault(
        "a follow-up is made twice",
        "run",
        "follow-ups",
        (
            "operations/reconcile.py",
            "                    tasks.append(new_task(run, definition, change, key=next(ids), now=now))\n",
            "                    tasks.append(new_task(run, definition, change, key=next(ids), now=now))\n"
            "                    tasks.append(new_task(run, definition, change, key=next(ids), now=now))\n"
            '                    tasks[-1].occurrence = "again"\n',
        ),
    ),
    _fault(
        "a follow-up is not made",
        "run",
        "follow-ups",
        (
            "operations/reconcile.py",
            "                    tasks.append(new_task(run, definition, change, key=next(ids), now=now))\n",
            "                    continue\n",
        ),
    ),
    _fault(
        "a cancel is ignored at the fence",
        "cancelled",
        "atomic-once",
        ("engine/finalize.py", "    if len(done) < len(writes):\n", "    if False:\n"),
        (
            "engine/execute.py",
            "record_together([write], now=runtime.clock(), using=runtime.using)[0]\n",
            "(record_together([write], now=runtime.clock(), using=runtime.using) or [write.task])[0]\n",
        ),
    ),
    _fault(
        "rescue gives up attempts that live",
        "living",
        "two-live-attempts lost-without-cause",
        (
            "models/task.py",
            "lease_expires_at__lt=MachineTime(-since, once=True))",
            "lease_expires_at__lt=MachineTime(timedelta(hours=1)))",
        ),
        ("store/poll_queries.py", " else None, given_up is not None or bool(missed))", " else None, True)"),
        ("dispatch/rescue.py", " for task in active if task.pk not in graced]", " for task in active]"),
    ),
    _fault(
        "a message is sent again with another token",
        "resent",
        "tokens",
        (
            "dispatch/rescue.py",
            'evidence={"resend": times.get(task.pk, 0) + 1}',
            'evidence={"resend": times.get(task.pk, 0) + 1}, claim_token=__import__("uuid").uuid4()',
        ),
    ),
    _fault(
        "an outcome is dropped",
        "simple",
        "lost lost-without-cause",
        (
            "engine/execute.py",
            "    if not outcomes:\n        return []\n    now = runtime.clock()\n",
            "    if outcomes:\n        return []\n    now = runtime.clock()\n",
        ),
    ),
    _fault(
        "a task is started before it is due",
        "ahead",
        "early",
        (
            "sql/held_due.postgresql.sql",
            "scheduled_at <= %(at)s\n",
            "scheduled_at <= %(at)s::timestamptz + interval '1 hour'\n",
        ),
        (
            "sql/first_due.postgresql.sql",
            "scheduled_at <= %(at)s",
            "scheduled_at <= %(at)s::timestamptz + interval '1 hour'",
        ),
    ),
    _fault(
        "a failed task becomes available at once, and the database lets it",
        "unguarded",
        "legal-moves",
        (
            "lifecycle.py",
            "    (State.ACTIVE, Trigger.RETRY): State.RETRYABLE,\n",
            "    (State.ACTIVE, Trigger.RETRY): State.AVAILABLE,\n",
        ),
    ),
    _fault(
        "a run does not end with its last task",
        "run",
        "runs-end",
        (
            "operations/reconcile.py",
            "    end(nothing_left, RunEnd.FINISHED, now=now, using=using)\n",
            "",
        ),
    ),
    _fault(
        "a redriven task has another idempotency key",
        "redriven",
        "idempotency-key",
        ("models/task_records.py", "    if again:\n", "    if False:\n"),
    ),
    _fault(
        "a limit gives one place more than there is",
        "narrow",
        "places",
        ("features/limits/places.py", '        "places": kind.places,\n', '        "places": kind.places + 1,\n'),
        (
            "features/limits/places.py",
            '"most": most, "places": kind.places}',
            '"most": most, "places": kind.places + 1}',
        ),
    ),
    _fault(
        "a task that is to be tried again gives up the place that it holds until its end",
        "to_the_end",
        "places",
        ("sql/columns.sql", "'retryable' AND task.held_until = 'attempt' THEN 0", "'retryable' THEN 0"),
    ),
    _fault(
        "who completes keeps its place",
        "narrow",
        "lost",
        (
            "sql/columns.sql",
            "WHEN change.to_state = 'completed' THEN 0",
            "WHEN change.to_state = 'completed' THEN task.slot",
        ),
    ),
]
