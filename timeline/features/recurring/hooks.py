"""Where schedules take part: polls begin what is due, and a run waits for an earlier one, or is skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID

from timeline.engine.failures import rested
from timeline.features.recurring.reading import told_clock, troubles_of_clocks
from timeline.features.recurring.runs import make_next
from timeline.features.recurring.sentences import BEHIND, SENTENCES
from timeline.features.recurring.store import Behind
from timeline.features.recurring.verbs import NextBeginnings, overlapping, recur, wake_queued
from timeline.hooks import Hooks, Poll

if TYPE_CHECKING:
    from timeline.engine.attempts import Attempt
    from timeline.lifecycle import Reason
    from timeline.store.transition import Write

MEMORY: Final = "next beginnings"


def _recur(poll: Poll) -> None:
    recur(poll.memory.setdefault(MEMORY, NextBeginnings()), now=poll.clock(), using=poll.using)


def _overlapping(attempts: Sequence[Attempt], *, now: datetime, using: str) -> Mapping[UUID, Reason | Write]:
    found = overlapping(attempts, now=now, using=using)
    by_id = {attempt.task.id: attempt for attempt in attempts}
    return {
        task_id: _resting(by_id[task_id], why) if isinstance(why, Behind) else why for task_id, why in found.items()
    }


def _resting(attempt: Attempt, behind: Behind) -> Write:
    return replace(rested(attempt, BEHIND(run=behind.key)), rests=behind, entered=False)


def _always(_poll: Poll) -> bool:
    return True


HOOKS = Hooks(
    chores=((_always, _recur),),
    prechecks=((attrgetter("definition.recurring"), _overlapping),),
    ends=(make_next,),
    origins=(told_clock,),
    troubles=(troubles_of_clocks,),
    run_ends=((attrgetter("once"), wake_queued),),
    sentences=SENTENCES,
)
