"""Where machines take part: outcomes, errors and losses may move them, and the database knows their moves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from timeline.features.machines.edges import see_edges
from timeline.features.machines.outcomes import answered, decided, lost_for_good, move_on
from timeline.hooks import Hooks, Poll

if TYPE_CHECKING:
    from timeline.store.locks import Locked
    from timeline.store.transition import Write


def _see_edges(poll: Poll) -> None:
    see_edges(using=poll.using)


def _prepare(using: str) -> None:
    see_edges(using=using)


def _decide(writes: Sequence[Write], locked: Locked, *, now: datetime, using: str) -> Sequence[Write]:
    return decided(writes, {run.pk: run for run in locked.runs}, now=now, using=using)


HOOKS = Hooks(
    chores=(_see_edges,),
    batches=(_prepare,),
    errors=(answered,),
    losses=(lost_for_good,),
    decisions=(_decide,),
    follows=(move_on,),
)
