"""Where machines take part: outcomes, errors and losses may move them, and the database knows their moves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING

from timeline.features.machines import one_trip
from timeline.features.machines.edges import forget_edges, see_edges
from timeline.features.machines.mirror import mirror_runs, tell_entity
from timeline.features.machines.outcomes import answered, decided, lost_for_good, move_on
from timeline.features.machines.people import asked_of_people
from timeline.features.machines.reading import told_state
from timeline.features.machines.sentences import SENTENCES
from timeline.hooks import Hooks, Poll
from timeline.models import Edge
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.store.locks import Locked
    from timeline.store.transition import Write


def _some_machine(_poll: Poll) -> bool:
    return any(known.machine is not None for known in registry)


def _see_edges(poll: Poll) -> None:
    see_edges(using=poll.using)


def _prepare(using: str) -> None:
    see_edges(using=using)


def _migrated(using: str, tables: Collection[str]) -> None:
    forget_edges(using)
    if Edge._meta.db_table in tables:
        see_edges(using=using)


def _decide(writes: Sequence[Write], locked: Locked, *, now: datetime, using: str) -> Sequence[Write]:
    return decided(writes, {run.pk: run for run in locked.runs}, now=now, using=using)


HOOKS = Hooks(
    chores=((_some_machine, _see_edges),),
    batches=(_prepare,),
    errors=((attrgetter("definition.errors"), answered),),
    losses=(lost_for_good,),
    decisions=(_decide,),
    follows=(move_on,),
    instances=((attrgetter("state"), tell_entity),),
    reconciled=(mirror_runs,),
    functions=(("move_runs", None), ("to_move", None), (one_trip.NAME, one_trip.function_text)),
    migrated=(_migrated,),
    origins=(told_state,),
    sentences=SENTENCES,
    asks=(asked_of_people,),
)
