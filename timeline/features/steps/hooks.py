"""Where steps take part: a half-done task goes on where it was, and its handler can tell how far it is."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from timeline.engine.failures import rested
from timeline.features.steps.calls import Steps
from timeline.features.steps.progress import ProgressTeller
from timeline.features.steps.refusals import misfit
from timeline.features.steps.sentences import SENTENCES
from timeline.features.steps.store import steps_of
from timeline.hooks import Hooks

if TYPE_CHECKING:
    from timeline.definition import Timeline
    from timeline.engine.attempts import Attempt
    from timeline.store.transition import Write


def _read_records(attempt: Attempt, using: str) -> Write | None:
    attempt.records = steps_of(attempt.idempotency_key, using=using)
    reason = misfit(attempt)
    return None if reason is None else rested(attempt, reason)


def _equip(context: Timeline, attempt: Attempt, using: str) -> None:
    context._step_runner = steps = Steps(attempt, using)
    if attempt.declared.options.bulk is None:
        attempt.steps = steps


def _teller(_context: Timeline, attempt: Attempt, using: str) -> ProgressTeller:
    return ProgressTeller(attempt, using)


HOOKS = Hooks(
    functions=(("record_step", None), ("record_last_step", None), ("record_place", None)),
    before_entry=((attrgetter("has_records"), _read_records),),
    contexts=((attrgetter("definition.steps"), _equip),),
    parts=(("teller", _teller),),
    sentences=SENTENCES,
)
