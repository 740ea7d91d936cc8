"""One change of one task: what it changes, and the states through which the task passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import Reason, State, Trigger, target
from timeline.models import ScheduledTask

if TYPE_CHECKING:
    from timeline.definition import Then
    from timeline.definition.fanning import Payloads
    from timeline.planning import Times
    from timeline.store.queueing import Behind
    from timeline.store.waiting import Rests


@dataclass(slots=True, kw_only=True)  # Not frozen: with so many arguments, an instance would take four times as long.
class Write:
    """
    One change of one task. If an argument is None, this value stays. Nobody changes an instance after it was made.

    Args:
        task: The task as it was read. The write is made only if the row still has its state and attempt.
        triggers: One move, or two in turn; empty: only times change.
        reason: Kept on the row and in the log.
        scheduled_at: New due time (aware).
        times: New due time, with the values that it was computed from.
        definition_hash: Hash of the definition that ``times`` come from.
        result: What the handler returned, as JSON text.
        error: The error of the failed attempt: ``class``, ``message``, ``traceback``.
        fingerprint: Fingerprint of that error: equal for attempts that failed in the same way.
        raised: The exception from which ``error`` was made, for the log of the process; not stored.
        failures, lost: Added to the counts of the row.
        claim_token, worker: Who takes the row.
        lease: How long they have the row, if the new state is pending or active; None: ``TIMELINE["LEASE"]``.
        evidence: Further facts for the log.
        fans_out: Rows to make when the task completes: name of a task → its occurrences. Written by ``fanning``.
        rests: What it waits for from now on.
        then: The event that moves the machine of the task in the same transaction. Written by ``moving_on``.
        answers: Events that an error may mean. The first that the machine takes in its state moves it. See ``answering``.
        slot: The number of the place of its limit that the task takes; 0: it gives its place up.
        entered: Whether the handler was entered, or may have been, in the attempt that this write ends.
    """

    task: ScheduledTask
    triggers: tuple[Trigger, ...] = ()
    reason: Reason | None = None
    scheduled_at: datetime | None = None
    times: Times | None = None
    definition_hash: str | None = None
    result: str | None = None
    error: dict[str, str] | None = None
    fingerprint: str = ""
    raised: Exception | None = None
    failures: int = 0
    lost: int = 0
    claim_token: UUID | None = None
    worker: str | None = None
    lease: timedelta | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    fans_out: Mapping[str, Payloads] = field(default_factory=dict)
    rests: Rests | Behind | None = None
    then: Then | None = None
    answers: tuple[str, ...] = ()
    slot: int | None = None
    entered: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether it only changes its task: it has no wait, no move of a machine, and no rows to fan out."""
        return self.rests is None and self.then is None and not self.answers and not self.fans_out

    @property
    def due_at(self) -> datetime | None:
        """The new due time; None: the due time stays."""
        return self.times.scheduled_at if self.times else self.scheduled_at

    @property
    def states(self) -> tuple[State, ...]:
        """
        All states from the present one to the new one, both included.

        Raises:
            TransitionNotAllowed: if the lifecycle does not have this move.
        """
        try:
            return passed(self.task.state, self.triggers)
        except TransitionNotAllowed:
            target(State(self.task.state), *self.triggers, task=self.task.id)  # Raises the same, and names the task.
            raise


@cache
def passed(state: str, triggers: tuple[Trigger, ...]) -> tuple[State, ...]:
    """All states that a task in ``state`` passes through by these triggers, both ends included."""
    start = State(state)
    target(start, *triggers)
    return (start, *(target(start, *triggers[:count]) for count in range(1, len(triggers) + 1)))
