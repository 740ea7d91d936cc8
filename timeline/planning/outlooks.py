"""The outlook of a task: its state after a plan is carried out. Its followers count from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from timeline import reasons
from timeline.lifecycle import Reason, ReasonCode, State
from timeline.planning.answers import TaskRow
from timeline.timing import When

_NEVER: Final = Reason(ReasonCode.PREDECESSOR)

# These endings decide nothing about the future: if the task is wanted again, it is made again.
LEFT_OPEN: Final = frozenset(
    {ReasonCode.SUPERSEDED, ReasonCode.DEFINITION, ReasonCode.PREDECESSOR, ReasonCode.RUN_ENDED}
)


@dataclass(frozen=True, slots=True)
class Outlook:
    """
    The outlook of a task: it has ended, will come, or never comes.

    Args:
        completed_at: When it completed; None: it has not.
        ended_at: When it ended, in any way; None: it has not, or the ended row will be made again.
        to_come: Whether it is open, or may still get a row.
        expected_at: When it is expected, if anybody can say.
        why_never: Why followers that wait for its completion do not come.
    """

    completed_at: datetime | None = None
    ended_at: datetime | None = None
    to_come: bool = False
    expected_at: datetime | None = None
    why_never: Reason = _NEVER

    def since(self, when: When) -> datetime | None:
        """The time that a follower counts from; None: it is not known yet."""
        return self.ended_at if when.takes_any_end else self.completed_at


TO_COME: Final = Outlook(to_come=True)  # Nobody can say when.


def outlook_of(ended: TaskRow) -> Outlook:
    """The outlook of a task whose last row has ended for good."""
    if ended.state == State.COMPLETED or ended.reason_code == ReasonCode.UNTIL:  # Its series has ended.
        return Outlook(ended.finished_at, ended.finished_at)
    said = {"task": ended.task_name, "state": ended.state, "code": ended.reason_code}
    if ended.occurrence:
        why = reasons.OCCURRENCE_ENDED(occurrence=ended.occurrence, **said)
    else:
        why = reasons.PREDECESSOR_ENDED(**said)
    return Outlook(ended_at=ended.finished_at, why_never=why)
