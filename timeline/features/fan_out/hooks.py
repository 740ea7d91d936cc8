"""Where fan-out takes part: what a handler fans out is written with its outcome, and nothing follows until all have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING
from uuid import UUID

from timeline.features.fan_out.fanned_rows import FannedOut, still_open, write_fanned_out
from timeline.features.fan_out.sentences import SENTENCES
from timeline.hooks import Hooks

if TYPE_CHECKING:
    from timeline.definition import Timeline
    from timeline.engine.attempts import Attempt
    from timeline.models import TimelineRun
    from timeline.store.transition import Write


def _equip(context: Timeline, attempt: Attempt, using: str) -> None:
    context._fan_out = wanted = FannedOut(attempt.declared, in_run=attempt.task.run_id is not None)
    if attempt.declared.options.bulk is None:  # Else it refuses, with a reason.
        attempt.fanned_out = wanted


def _write(writes: Sequence[Write], runs: Mapping[UUID, TimelineRun], *, now: datetime, using: str) -> Set[UUID]:
    write_fanned_out(writes, runs, now=now, using=using)
    return frozenset()


HOOKS = Hooks(
    contexts=((attrgetter("definition.fanned_out"), _equip),),
    follows=(_write,),
    still_open=(still_open,),
    sentences=SENTENCES,
)
