"""Who reads a page: what they may read of each task, as the policy says."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from timeline.lifecycle import ReasonCode
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.reading.masking import is_ended_by_a_person, masked, without_people, without_people_entry
from timeline.reading.retelling import retold_end

if TYPE_CHECKING:
    from timeline.policy import TimelinePolicy, User


class Reader:
    """
    Reads tasks that they may see.

    Args:
        policy: Says what of them.
        user: Of the request.
    """

    def __init__(self, policy: TimelinePolicy, user: User) -> None:
        self.policy = policy
        self.user = user
        self.payload = policy.sees_payload(user)

    def reads_people(self, task: ScheduledTask) -> bool:
        """Whether they read who decided about it, and what they wrote."""
        return self.policy.sees_decisions(self.user, task)

    def reads_people_of(self, run: TimelineRun) -> bool:
        """Whether they read who decided about a run."""
        return self.reads_people(_some_task_of(run))

    def shown(self, task: ScheduledTask) -> ScheduledTask:
        """The task without what they may not read. Never save it."""
        shown = task if self.payload else masked(task)
        return shown if self.reads_people(task) else without_people(shown)

    def hushed(self, log: Iterable[LogEntry], task: ScheduledTask) -> list[LogEntry]:
        """The log of a task without who decided and what they wrote, where they may not read that. Errors stay."""
        return list(log) if self.reads_people(task) else [without_people_entry(entry, task) for entry in log]

    def end_of(self, run: TimelineRun) -> str:
        """Why a run ended, in words; empty: it has not."""
        if is_ended_by_a_person(run) and not self.reads_people_of(run):
            return str(ReasonCode.EXIT.label)
        return retold_end(run)


def _some_task_of(run: TimelineRun) -> ScheduledTask:
    """What a policy can be asked about: it decides about tasks, of which a run has any number."""
    return ScheduledTask(run=run, task_key=f"{run.timeline}.", entity_label=run.entity_label, entity_id=run.entity_id)
