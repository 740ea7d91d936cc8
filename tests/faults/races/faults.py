"""The faults that the races must notice, each planted by itself: each takes away something that protects one of the acts."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.faults.planted.surgery import Change, Fault
from tests.faults.races.claiming import CANCEL_AGAINST_CLAIM
from tests.faults.races.ending import CANCEL_AGAINST_ATOMIC_OUTCOME, CANCEL_AGAINST_PLAIN_OUTCOME
from tests.faults.races.exiting import EXIT_AGAINST_ATTEMPT, EXIT_AGAINST_OUTCOME, EXIT_AGAINST_START
from tests.faults.races.pruning import PRUNE_AGAINST_REDRIVE_AD_HOC, PRUNE_AGAINST_REDRIVE_IN_RUN
from tests.faults.races.race import Race
from tests.faults.races.releasing import RELEASE_AGAINST_EXITS
from tests.faults.races.rescuing import RESCUE_AGAINST_ATOMIC_OUTCOME, RESCUE_AGAINST_PLAIN_OUTCOME
from tests.faults.races.saving import SAVE_AGAINST_MOVE


class Planted(NamedTuple):
    """A fault, the race that must notice it, and the rounds that are enough for it."""

    race: Race
    fault: Fault
    rounds: int = 20

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.race.name}: {self.fault.name}"


def _fault(name: str, *changes: tuple[str, ...]) -> Fault:
    return Fault(name, tuple(Change(*change) for change in changes))


def _on_postgresql(name: str, *changes: tuple[str, str, str]) -> Fault:
    return _fault(name, *((*change, "postgresql") for change in changes))


def _too_early(name: str, where: str, transaction: str = "atomic(using=using)") -> Fault:
    """SQLite has one writer and no locks: whoever reads in the transaction it writes in sees what is there."""
    return _fault(
        f"{name} reads before its transaction begins", (where, f"    with {transaction}:\n", "    if True:\n", "sqlite")
    )


_ENTITIES: Final = (
    "store.locks:_locked",
    'rows.select_for_update(no_key=True, of=(*links, "self") if links else (), skip_locked=not wait)',
    "rows",
)
_RUNS: Final = ("store.locks:lock_runs", ".locked(skip_locked=not wait)", "")
_GIVEN: Final = ("lock_tasks", "FOR NO KEY UPDATE\n", "")
_RECONCILED: Final = ("rows_to_plan", "FOR NO KEY UPDATE  -- if locked\n", "")

# Writes.
NO_STATE: Final = _fault(
    "a write does not compare the state",
    ("transition", "        AND task.state || '' = change.from_state  -- if not found\n", "", "postgresql"),
    ("transition", "    AND task.state = change.from_state\n", "", "sqlite"),
)
NO_ATTEMPT: Final = _fault(
    "a write does not compare the attempt", ("transition", "AND task.attempt = change.from_attempt", "")
)
NO_FENCE: Final = _fault(
    "an outcome that comes too late is accepted",
    ("engine.finalize:record_together", "    if len(done) < len(writes):\n", "    if False:\n"),
    ("engine.execute:_execute", "using=runtime.using)[0]", "using=runtime.using) and write.task or write.task"),
)

# Locks.
READ_BEFORE: Final = _on_postgresql(
    "a verb acts on tasks as they were before it locked them",
    ("store.locks:lock_tasks_with_runs", '"id, run_id, entity_label, entity_id"', "COLUMNS"),
    (
        "store.locks:lock_tasks_with_runs",
        '_read("lock_tasks", COLUMNS, task_ids, using)',
        '{row["id"]: row for row in seen}',
    ),
)
NO_TASKS: Final = _on_postgresql("a verb does not lock the tasks it is given", _GIVEN)
NO_RUNS: Final = _on_postgresql("nobody locks runs", _RUNS)
NO_ENTITIES_READ: Final = _on_postgresql("a start of a run does not lock the entity", _ENTITIES)
NO_ENTITIES: Final = _on_postgresql(
    "an exit does not lock the entity", ("lock_rows", "    FOR NO KEY UPDATE  -- if not shared\n", "")
)
NEITHER: Final = _on_postgresql("an outcome locks neither entity nor run", _ENTITIES, _RUNS)
NOTHING: Final = _on_postgresql("neither a save nor a move locks anything", _ENTITIES, _RUNS, _GIVEN, _RECONCILED)
CLAIM_OF_ANY: Final = _on_postgresql(
    "a claim locks nothing", ("held_shares", "        FOR NO KEY UPDATE SKIP LOCKED\n", "")
)
START_OF_ANY: Final = _on_postgresql(
    "a start of an attempt locks nothing", ("held_given", "    FOR NO KEY UPDATE {skip}\n", "")
)
EXIT_OF_ANY: Final = _on_postgresql("an exit does not lock the tasks", ("held_runs", "    FOR NO KEY UPDATE\n", ""))

# Prune.
PRUNE_OF_ANY: Final = _on_postgresql(
    "prune does not lock the tasks it takes",
    ("features.maintenance.prune:_ended_ad_hoc", "tasks.by_id().locked(skip_locked=True)", "tasks.by_id()"),
)
PRUNE_ONCE: Final = _on_postgresql(
    "prune does not ask again when it has its locks",
    ("features.maintenance.prune:_ended_ad_hoc", 'in _ask("ended_ad_hoc", before, limit, using):', "in found:"),
)
PRUNE_PARTS: Final = _on_postgresql(
    "prune takes a task of which somebody has a revision",
    ("features.maintenance.prune:_ended_ad_hoc", "if several <= held ", ""),
)
PRUNE_OF_ANY_RUN: Final = _on_postgresql(
    "prune does not lock the runs it takes", ("ended_runs", "FOR NO KEY UPDATE SKIP LOCKED\n", "")
)

# The order of locks.
BACKWARDS: Final = _on_postgresql(
    "a write of several tasks locks the last one first",
    ("held_these", "    ORDER BY id::text\n", "    ORDER BY id::text DESC\n"),
)
EXIT_BACKWARDS: Final = _on_postgresql(
    "an exit locks the last task first", ("held_runs", "    ORDER BY id::text\n", "    ORDER BY id::text DESC\n")
)

# On SQLite.
EARLY_CANCEL: Final = _too_early("a cancel", "operations.cancel:cancel", "in_transaction(using)")
EARLY_START: Final = _fault(
    "a start of an attempt reads before its transaction begins, and does not compare the state",
    ("engine.attempts:begin_attempts", "    with committed(using):\n", "    if True:\n", "sqlite"),
    ("transition", "    AND task.state = change.from_state\n", "", "sqlite"),
)
EARLY_EMIT: Final = _too_early("an event", "operations.emit:emit", "around(hooks().emits, name), in_transaction(using)")
EARLY_MOVE: Final = _too_early("a move", "operations.move:move")
EARLY_PRUNE: Final = _too_early("prune", "features.maintenance.prune:prune")
EARLY_REDRIVE: Final = _too_early("a redrive", "operations.redrive:redrive")

PLANTED: Final = [
    *(Planted(CANCEL_AGAINST_CLAIM, fault, 80) for fault in (CLAIM_OF_ANY, NO_TASKS, READ_BEFORE, EARLY_CANCEL)),
    *(
        Planted(race, fault)
        for race in (CANCEL_AGAINST_ATOMIC_OUTCOME, CANCEL_AGAINST_PLAIN_OUTCOME)
        for fault in (NO_STATE, NO_FENCE, READ_BEFORE, EARLY_CANCEL)
    ),
    *(Planted(PRUNE_AGAINST_REDRIVE_AD_HOC, fault) for fault in (PRUNE_OF_ANY, PRUNE_PARTS, NO_TASKS, READ_BEFORE)),
    Planted(PRUNE_AGAINST_REDRIVE_AD_HOC, PRUNE_ONCE, 100),
    *(Planted(PRUNE_AGAINST_REDRIVE_AD_HOC, fault, 60) for fault in (EARLY_PRUNE, EARLY_REDRIVE)),
    *(
        Planted(PRUNE_AGAINST_REDRIVE_IN_RUN, fault, 8) for fault in (PRUNE_OF_ANY_RUN, NO_RUNS)
    ),  # Each circle: a second.
    Planted(PRUNE_AGAINST_REDRIVE_IN_RUN, READ_BEFORE),
    *(Planted(PRUNE_AGAINST_REDRIVE_IN_RUN, fault, 60) for fault in (EARLY_PRUNE, EARLY_REDRIVE)),
    *(Planted(EXIT_AGAINST_START, fault, 40) for fault in (NO_ENTITIES, NO_ENTITIES_READ, EARLY_EMIT)),
    *(Planted(EXIT_AGAINST_ATTEMPT, fault, 200) for fault in (START_OF_ANY, EXIT_OF_ANY, EARLY_START)),
    *(Planted(EXIT_AGAINST_OUTCOME, fault) for fault in (NO_STATE, NO_FENCE, NEITHER)),
    *(Planted(SAVE_AGAINST_MOVE, fault, 40) for fault in (READ_BEFORE, NOTHING, EARLY_MOVE)),
    *(Planted(RELEASE_AGAINST_EXITS, fault, 50) for fault in (BACKWARDS, EXIT_BACKWARDS)),
    *(
        Planted(race, fault)
        for race in (RESCUE_AGAINST_ATOMIC_OUTCOME, RESCUE_AGAINST_PLAIN_OUTCOME)
        for fault in (NO_ATTEMPT, NO_FENCE)
    ),
]
