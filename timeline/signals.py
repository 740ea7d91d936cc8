"""What the package announces to whoever listens; what is about rows, after the commit of the transaction that made it true."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.dispatch import Signal

__all__ = [
    "Alert",
    "Ending",
    "alerted",
    "attempts_failed",
    "entity_erased",
    "tasks_ended",
]  # What hosts may count on; the rest is between parts of this package.

# Rows became due that no poll has seen yet. Argument: ``using``, the alias of their database. A hint, no more: a poll finds
# them all the same.
work_due = Signal()

# The same for rows that become due before the next poll: one that sleeps until its next row should look at them first.
work_soon = Signal()

# Both, for other processes, on PostgreSQL: what a worker of the database listens on.
CHANNEL: Final = "timeline_due"

# A timeline was made known to a registry, which is the sender. Argument: ``label`` of its entity's model; empty for a system
# timeline.
registered = Signal()

# Tasks have ended: completed, discarded or cancelled. Arguments: ``using``, and ``endings``, a tuple of ``Ending``: those that
# one statement wrote. Each ending is told once at most, and not if the process dies after the commit: the rows are the truth.
tasks_ended = Signal()

# Attempts have failed, or were lost with their worker, and their tasks will be tried again. The same arguments. An attempt
# that was the last is told by ``tasks_ended``.
attempts_failed = Signal()


# Runs of machines have come into states. Arguments: ``using``, and ``entries``, a tuple of ``Entered``: those that one
# statement wrote. Sent before the commit, in the transaction that moves them: what a listener writes there is committed with
# the move, and what it raises undoes both.
runs_entered = Signal()

# Tasks have ended, as ``tasks_ended`` says; but before the commit, in the transaction that ends them.
tasks_ending = Signal()

# Attempts have failed, also those that were the last. Arguments as for ``attempts_failed``; but sent as soon as it is written,
# within a transaction if there is one. If that is undone, the same attempt may be told again.
attempts_failing = Signal()

# What is kept about an entity was blanked: whoever keeps more about it does so, too. Arguments: ``entity_ref``, ``using``, and
# ``done``, whose ``count(model, number)`` takes what was blanked. Sent in the transaction that records it.
entity_erased = Signal()

# Rows name entities by the new label of their model. Arguments: ``old``, ``new`` and ``using``. Sent in the transaction that
# renames them; in a migration, a listener's own tables may not be there yet.
relabelled = Signal()

# What ended long ago is being deleted. Arguments: ``using``, and ``ended_before``. A listener deletes a batch of what is its
# own, in a transaction of its own, and returns how many rows; 0: nothing is left.
pruning = Signal()

# Somebody asks how a database is doing. Arguments: ``using``, and ``now``. A listener says what is wrong with what is its own,
# as a ``Trouble``; None: nothing is.
diagnosing = Signal()

# Something failed for good, and people should know: once an hour of what failed alike. Arguments: ``using``, and ``alert``.
# A worker sends it, from a task of its own: it is not lost with the process, but after a crash it may be sent twice.
alerted = Signal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """
    What people should know.

    Args:
        kind: ``discarded``; ``missed``: a time of a schedule was passed over; ``unpolled``: nobody polls the database.
            ``disabled``: nothing is sent to an endpoint of webhooks any more; ``unsent``: nobody sends webhooks that wait.
            ``parked``: the brake of a destructive task has put it on hold.
        about: Key of the task; of what was missed, the name of its timeline; of ``unpolled`` and ``unsent``, the alias of the
            database; of ``disabled``, what the endpoint is called.
        group: The group of dead letters, as ``timeline_dead_letters`` takes it; empty otherwise.
        count: How many there are in the group by now; 1 otherwise.
        first_at, last_at: When the first and the last of them were discarded; otherwise when it was noticed.
        message: The error, or what is wrong. Numbers, ids, addresses, paths and quoted values in an error show as ``#``.
        task_id: One of the tasks; None: there is none.
        url: Of the page of the admin that shows it; empty: ``TIMELINE["BASE_URL"]`` is not set, or there is no page.
    """

    kind: str
    about: str
    group: str
    count: int
    first_at: datetime
    last_at: datetime
    message: str
    task_id: UUID | None = None
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """
    What is wrong beside tasks.

    Args:
        kind: As that of an alert.
        text: What is wrong, and what to do about it.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """
    That a run of a machine came into a state.

    Args:
        entry_id: Of its entry.
        run_id, timeline, key: The run, the name of its machine, and its key; empty: it has none.
        entity_label, entity_id: What it is about.
        seq: Which move of the run it was; 0: it began so.
        from_state: Empty: it began so.
        to_state: The state that it came to.
        event: Name of the event; ``adopted`` and ``renamed`` are no events.
        at: Story time.
    """

    entry_id: UUID
    run_id: UUID
    timeline: str
    key: str
    entity_label: str
    entity_id: str
    seq: int
    from_state: str
    to_state: str
    event: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """
    How a task ended, or an attempt of one that is tried again.

    Args:
        task_id: Of the row.
        task_key: ``<timeline>.<method>``.
        entity_label, entity_id: What it is about; empty: nothing.
        run_id: None: scheduled ad hoc.
        occurrence: Which of many, where another task of the run has fanned it out; of an ad hoc task its key.
        attempt: Which attempt it was; 0: it never started.
        state: ``completed``, ``discarded`` or ``cancelled``; of a failed attempt ``retryable``.
        reason_code: Why, from the closed set.
        error: What the handler raised in this process, if it did.
        seconds: How long the attempt took, from its start to its outcome, by story time; None: it is no attempt that ended.
    """

    task_id: UUID
    task_key: str
    entity_label: str
    entity_id: str
    run_id: UUID | None
    attempt: int
    state: str
    reason_code: str
    error: BaseException | None = None
    occurrence: str = ""
    seconds: float | None = None
